"""What sites advertised last, with the jobs that they got since and the age of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, connections

from broker_site.foundation import gdpconfig
from brokerage.rules.dispatch.site_limits import Advertisement, SiteState, room, why_no_room

_READ = """
SELECT site_id, number, counted_at, arrived_at, extract(epoch FROM now() - counted_at)::float8, kind, stations, sent_by,
    max_jobs, max_submitting_jobs, current_jobs, current_submitting_jobs, matched
FROM brokerage_siteadvertisement WHERE %(sites)s::text[] IS NULL OR site_id = ANY (%(sites)s) ORDER BY site_id
"""
_OFFERED = """
SELECT a.site_id, station FROM brokerage_siteadvertisement a, unnest(a.stations) station
WHERE a.stations && %(stations)s::varchar[] AND station = ANY (%(stations)s::varchar[]) ORDER BY a.site_id
"""
"""One row for each site that has advertised is read: there are hundreds."""


@dataclass(frozen=True, slots=True)
class AdvertisedSite:
    """A site as it advertised itself last. `age_s`: since the count, when this was read."""

    site: str
    number: int
    counted_at: datetime
    arrived_at: datetime
    age_s: float
    kind: str
    stations: tuple[str, ...]
    sent_by: str
    state: SiteState

    def room(self, max_age_s: float, later_s: float = 0.0) -> int:
        """How many more jobs the site takes, so much later than this was read."""
        return 0 if self.age_s + later_s > max_age_s else room(self.state)

    def why_no_room(self, max_age_s: float, later_s: float = 0.0) -> str:
        """Why it takes none, in words; empty: it takes some."""
        return why_no_room(self.state, self.age_s + later_s, max_age_s)


def advertised_sites(sites: Collection[str] | None = None, alias: str = "default") -> dict[str, AdvertisedSite]:
    """The sites that have advertised, by name; only those named, where some are; one statement."""
    with connections[alias].cursor() as cursor:
        cursor.execute(_READ, {"sites": None if sites is None else list(sites)})
        return {row[0]: _site(*row) for row in cursor.fetchall()}


def station_sites(stations: Collection[str]) -> dict[str, list[str]]:
    """Station -> the sites that offer it by their last advertisement, however old that is; one statement, none for no station."""
    offered: dict[str, list[str]] = {}
    if not stations:
        return offered
    with connection.cursor() as cursor:
        cursor.execute(_OFFERED, {"stations": sorted(stations)})
        for site, station in cursor.fetchall():
            offered.setdefault(station, []).append(site)
    return offered


def max_age_s() -> float:
    """How old an advertisement may be."""
    return float(gdpconfig.value("dispatch", "SITE_AD_MAX_AGE"))


def _site(
    site: str,
    number: int,
    counted_at: datetime,
    arrived_at: datetime,
    age_s: float,
    kind: str,
    stations: list[str],
    sent_by: str,
    *numbers: int,
) -> AdvertisedSite:
    max_jobs, max_submitting, current, submitting, matched = numbers
    ad = Advertisement(
        max_jobs=max_jobs, max_submitting_jobs=max_submitting, current_jobs=current, current_submitting_jobs=submitting
    )
    state = SiteState(ad, matched)
    return AdvertisedSite(site, number, counted_at, arrived_at, age_s, kind, tuple(stations), sent_by, state)
