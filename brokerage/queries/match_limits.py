"""How the running limits and delays of a site stand, to be told to people."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connections

from broker_site.foundation import gdpconfig
from brokerage.rules.dispatch.match_limits import Delay, Gauge, Limited, SiteRules, rules_of, wait_s

_READ = """
SELECT attribute, value, ce, running, matched, coalesce(extract(epoch FROM free_at), 0)::float8, counted_at IS NOT NULL,
    extract(epoch FROM clock_timestamp())::float8
FROM brokerage_matchgauge WHERE site_id = %s
"""


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One limit: the most jobs and those there, as last counted with the matches since (None: not counted), and the delay."""

    on: Limited
    most: int | None
    there: int | None
    delay: Delay | None
    wait_s: float

    @property
    def held(self) -> bool:
        """Whether it lets nothing pass now."""
        return self.wait_s > 0 or (self.most is not None and self.there is not None and self.there >= self.most)


def site_rules(site: str) -> SiteRules:
    """The limits that are configured for a site."""
    running, delays = (gdpconfig.value("dispatch", name) for name in ("RUNNING_LIMITS", "MATCHING_DELAYS"))
    return rules_of(site, running, delays)


def limit_rows(site: str, alias: str = "default") -> list[LimitRow]:
    """The limits of a site; one statement where it has any."""
    if not (rules := site_rules(site)):
        return []
    with connections[alias].cursor() as cursor:
        cursor.execute(_READ, [site])
        gauges = {Limited(*row[:3]): (Gauge(*row[3:7]), row[7]) for row in cursor.fetchall()}
    return [_row(limited, rules, *gauges.get(limited, (Gauge(counted=False), 0.0))) for limited in sorted(rules.limits)]


def _row(limited: Limited, rules: SiteRules, gauge: Gauge, now: float) -> LimitRow:
    most, delay = rules.running.get(limited), rules.delays.get(limited)
    there = gauge.running + gauge.matched if most is not None and gauge.counted else None
    return LimitRow(limited, most, there, delay, wait_s(gauge.free_at, now, delay) if delay else 0.0)
