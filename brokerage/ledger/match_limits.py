"""Running limits and delays between matches at sites, exact across processes (facts on matching a6).

One row for each limit, locked while a match that it is about is made: who asks within the transaction of the lease never passes
a limit, and what is rolled back took nothing. Sites without limits cost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from django.db import connection, transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.sql.prepared import Call, Prepared, run_together
from brokerage.queries.held_slots import held_slots
from brokerage.queries.match_limits import site_rules
from brokerage.rules.dispatch.match_limits import FREE, Gauge, Held, Limited, SiteRules, Values, held, matched

FRESH_S = 0.25
"""How old what `at` knows of other processes may be."""

_SEEN = Prepared(
    "seen_gauges",
    "text, float8",
    """
    SELECT attribute, value, ce, running, matched, coalesce(extract(epoch FROM free_at), 0)::float8,
        counted_at IS NOT NULL, coalesce(counted_at < now() - make_interval(secs => $2), true),
        extract(epoch FROM clock_timestamp())::float8
    FROM brokerage_matchgauge WHERE site_id = $1
    """,
)
_LOCK = Prepared(
    "lock_gauges",
    "text, text[], text[], text[]",
    """
    SELECT g.id FROM unnest($2, $3, $4) AS v(attribute, value, ce)
        JOIN brokerage_matchgauge g ON g.site_id = $1 AND (g.attribute, g.value, g.ce) = (v.attribute, v.value, v.ce)
    ORDER BY g.id FOR NO KEY UPDATE OF g
    """,
)
_ONE_COUNTS = "SELECT pg_try_advisory_xact_lock(hashtext('running limits'), hashtext(%s))"
_WRITE = Prepared(
    "write_gauges",
    "text, text[], text[], text[], int[], float8[]",
    """
    UPDATE brokerage_matchgauge g SET matched = v.matched, free_at = CASE WHEN v.free_at > 0 THEN to_timestamp(v.free_at) END
    FROM unnest($2, $3, $4, $5, $6) AS v(attribute, value, ce, matched, free_at)
    WHERE g.site_id = $1 AND (g.attribute, g.value, g.ce) = (v.attribute, v.value, v.ce)
    """,
)
_COUNTED = """
UPDATE brokerage_matchgauge g SET running = v.running, matched = 0, counted_at = clock_timestamp()
FROM unnest(%s::text[], %s::text[], %s::text[], %s::int[]) AS v(attribute, value, ce, running)
WHERE g.site_id = %s AND (g.attribute, g.value, g.ce) = (v.attribute, v.value, v.ce)
"""
_NEW = """
INSERT INTO brokerage_matchgauge (site_id, attribute, value, ce)
SELECT %s, v.* FROM unnest(%s::text[], %s::text[], %s::text[]) AS v ON CONFLICT DO NOTHING
"""
_GONE = """
DELETE FROM brokerage_matchgauge
WHERE site_id = %s AND (attribute, value, ce) IN (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[]))
"""
_PILOT_CE = Prepared(
    "note_ces",
    "uuid, text[]",
    """
    INSERT INTO brokerage_pilotce (pilot_id, ces) VALUES ($1, $2)
    ON CONFLICT (pilot_id) DO UPDATE SET ces = excluded.ces WHERE brokerage_pilotce.ces <> excluded.ces
    """,
)
MOST_CES = 50
"""Computing elements of a pilot that are noted; of one that names more those whose jobs are counted."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The gauges of a site, and when (seconds since 1970); `due`: those that are to be counted anew."""

    gauges: Mapping[Limited, Gauge]
    due: frozenset[Limited]
    now: float
    at: float = field(default_factory=time.monotonic)

    def time_now(self) -> float:
        """The database's time now."""
        return self.now + time.monotonic() - self.at


@dataclass(slots=True)
class Limits:
    """The running limits and delays of all sites."""

    _rules: dict[str, SiteRules] = field(default_factory=dict)
    _revision: int = -1
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def has(self, site: str) -> bool:
        """Whether there are any at the site."""
        return bool(self._rules_of(site))

    def at(self, site: str, ces: Collection[str] = ()) -> Held:
        """What holds back matches at the site now: `values` by attribute, `waits_s` where a delay does, `why` each in words.

        With what other processes did a moment ago; `note` is exact.
        """
        if not (rules := self._rules_of(site)):
            return FREE
        seen = self._seen.get(site)
        old = seen is None or time.monotonic() - seen.at > FRESH_S or bool(seen.due & rules.running.keys())
        if seen is None or old or seen.gauges.keys() != rules.limits():
            seen = self._read(site, rules)
        return held(rules.at(ces), rules, seen.gauges, seen.time_now())

    def noting(
        self, site: str, values: Values, *, ces: Collection[str] = (), pilot: UUID | None = None
    ) -> tuple[Held, list[Call]]:
        """To match a job with these values at the site: FREE, and what counts it, to be run with its lease; or what forbids it.

        To be called in the transaction of the lease, which ends soon: others that the same limit is about wait for it. Once in
        a transaction: two at once that note in two orders would wait for each other. `pilot`: who gets it, where CEs are named.
        """
        rules = self._rules_of(site)
        if not (limits := rules.on(ces, values)):
            return FREE, []
        if site not in self._seen:
            self._read(site, rules)
        seen = self._seen[site] = self._locked(site, limits)
        if found := held(limits, rules, seen.gauges, seen.now):
            return found, []
        after = matched(limits, rules, seen.gauges, seen.now)
        calls = [_writing(site, after)]
        if ces and pilot is not None and (counted := rules.counted_ces()):
            noted = set(ces) if len(ces) <= MOST_CES else counted & set(ces)
            calls.append(_PILOT_CE.with_values(str(pilot), sorted(noted)))
        # What is rolled back took nothing, and nobody is held back by it.
        transaction.on_commit(partial(self._noted, site, replace(seen, gauges={**seen.gauges, **after})))
        return found, calls

    def _noted(self, site: str, seen: _Seen) -> None:
        self._seen[site] = seen

    def forget(self) -> None:
        """Know nothing, as a new process."""
        self._seen.clear()
        self._revision = -1

    def _rules_of(self, site: str) -> SiteRules:
        if self._revision != (revision := gdpconfig.revision()):
            self._rules, self._revision = {}, revision
        if (rules := self._rules.get(site)) is None:
            rules = self._rules[site] = site_rules(site)
        return rules

    def _read(self, site: str, rules: SiteRules) -> _Seen:
        """The gauges of a site, after the jobs there were counted, where that is due."""
        seen = _see(site)
        if seen.gauges.keys() != rules.limits():
            _keep_only(site, rules.limits(), seen.gauges.keys())
            seen = _see(site)
        if seen.due & rules.running.keys() and _count(site, rules.running.keys()):
            seen = _see(site)
        self._seen[site] = seen
        return seen

    def _locked(self, site: str, limits: Collection[Limited]) -> _Seen:
        """The gauges with these locked, made where they are missing, counted where they never were."""
        for _ in range(2):
            calls = [_LOCK.with_values(site, *_columns(limits)), _SEEN.with_values(site, _period_s())]
            seen = _seen(run_together(calls))
            if seen.gauges.keys() >= set(limits):
                return seen
            self._read(site, self._rules_of(site))
        return seen


LIMITS = Limits()


def _period_s() -> float:
    return float(gdpconfig.value("dispatch", "RUNNING_COUNT_PERIOD"))


def _columns(limits: Iterable[Limited]) -> tuple[list[str], list[str], list[str]]:
    some = sorted(limits)
    return [each.attribute for each in some], [each.value for each in some], [each.ce for each in some]


def _see(site: str) -> _Seen:
    return _seen(_SEEN.run(site, _period_s()))


def _seen(rows: list[tuple[str, str, str, int, int, float, bool, bool, float]]) -> _Seen:
    gauges = {Limited(*row[:3]): Gauge(*row[3:7]) for row in rows}
    return _Seen(gauges, frozenset(Limited(*row[:3]) for row in rows if row[7]), rows[0][8] if rows else 0.0)


def _writing(site: str, gauges: Mapping[Limited, Gauge]) -> Call:
    some = sorted(gauges)
    return _WRITE.with_values(
        site, *_columns(some), [gauges[each].matched for each in some], [gauges[each].free_at for each in some]
    )


def _keep_only(site: str, wanted: Collection[Limited], there: Collection[Limited]) -> None:
    """Rows for the limits that are configured, and for no others."""
    with connection.cursor() as cursor:
        if new := set(wanted) - set(there):
            cursor.execute(_NEW, [site, *_columns(new)])
        if gone := set(there) - set(wanted):
            cursor.execute(_GONE, [site, *_columns(gone)])


def _count(site: str, limits: Collection[Limited]) -> bool:
    """Count the jobs at the site anew for these limits; False: somebody else is at it.

    Their rows are locked first: each match that was noted is either committed, and seen, or comes after.
    """
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(_ONE_COUNTS, [site])
        if not cursor.fetchone()[0]:
            return False
        _LOCK.run(site, *_columns(limits))
        counts = held_slots(site, limits)
        cursor.execute(_COUNTED, [*_columns(limits), [counts[each] for each in sorted(limits)], site])
    return True
