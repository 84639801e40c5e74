"""Running limits and delays between matches at sites, exact across processes (facts on matching a6).

One row for each limit, asked by the statement of the lease and counted under a lock before it is committed (`match_gauges`):
nobody ever passes a limit, and what is rolled back took nothing. What a process keeps of them saves asks that would get nothing.
Sites without limits cost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from django.db import connection, transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig.values import Config
from broker_site.foundation.sql.prepared import Call, Prepared
from brokerage.ledger.match_blocks import BLOCKS, kept_blocks, stored
from brokerage.ledger.match_gauges import Passing, locking, passing
from brokerage.queries.held_slots import held_slots
from brokerage.queries.match_limits import site_rules
from brokerage.rules.dispatch.match_limits import FREE, Gauge, Held, Limited, SiteRules, Values, held, matched

FRESH_S = 0.25
"""How old what `at` knows of other processes may be where a limit holds matches back."""
FREE_FRESH_S = 1.0
"""How old where none does: a match that a limit refuses all the same costs a statement in vain, and the next look."""

_SEEN = Prepared(
    "seen_gauges",
    "text, float8",
    """
    SELECT attribute, value, ce, running, matched, coalesce(extract(epoch FROM free_at), 0)::float8,
        counted_at IS NOT NULL, coalesce(counted_at < now() - make_interval(secs => $2) OR counted_at > clock_timestamp(), true),
        extract(epoch FROM clock_timestamp())::float8, id
    FROM brokerage_matchgauge WHERE site_id = $1
    """,
)
"""A count of the future was made before the clock was set back."""
_ONE_COUNTS = "SELECT pg_try_advisory_xact_lock(hashtext('running limits'), hashtext(%s))"
_COUNTED = """
UPDATE brokerage_matchgauge g SET running = v.running, matched = v.taken, blocks = v.blocks, counted_at = clock_timestamp()
FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::jsonb[]) AS v(id, running, taken, blocks) WHERE g.id = v.id
"""
_LOCKED = """
SELECT id, CASE WHEN counted_at IS NOT NULL THEN running + matched END FROM brokerage_matchgauge WHERE id = ANY (%s)
ORDER BY id FOR NO KEY UPDATE
"""
_SUBMITTED = """
UPDATE brokerage_matchgauge g SET matched = g.matched + v.n
FROM unnest(%s::text[], %s::text[], %s::text[], %s::int[]) AS v(attribute, value, ce, n)
WHERE g.site_id = %s AND (g.attribute, g.value, g.ce) = (v.attribute, v.value, v.ce)
"""
_NEW = """
INSERT INTO brokerage_matchgauge (site_id, attribute, value, ce)
SELECT %s, v.* FROM unnest(%s::text[], %s::text[], %s::text[]) AS v ON CONFLICT DO NOTHING
"""
_UNWANTED = """
SELECT id FROM brokerage_matchgauge
WHERE site_id = %s AND (attribute, value, ce) IN (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[]))
ORDER BY id FOR UPDATE SKIP LOCKED
"""
"""Those that are in use now are looked at the next time."""
_GONE = "DELETE FROM brokerage_matchgauge WHERE id = ANY (%s)"
_NOT_COUNTED = "UPDATE brokerage_matchgauge SET counted_at = NULL WHERE id = ANY (%s) AND counted_at IS NOT NULL"
_PILOT_CE = Prepared(
    "note_ces",
    "uuid, uuid, text[]",
    """
    INSERT INTO brokerage_pilotce (pilot_id, ces) SELECT $1, $3
    WHERE EXISTS (SELECT FROM brokerage_job WHERE lease_holder = $1 AND lease_request = $2)
    ON CONFLICT (pilot_id) DO UPDATE SET ces = excluded.ces WHERE brokerage_pilotce.ces <> excluded.ces
    """,
)
BLOCKS_UP_TO_S = 5.0
"""Where jobs are counted less often there are no blocks: what a thread leaves of one counts as used until the next count."""
COUNT_AT_MOST = 50
"""Jobs are counted for no more than such a part of the time, if blocks allow it: the rows of the limits are locked meanwhile."""
MOST_CES = 50
"""Computing elements of a pilot that are noted; of one that names more those whose jobs are counted."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The gauges of a site, and when (seconds since 1970); `due`: those that are to be counted anew."""

    gauges: Mapping[Limited, Gauge]
    due: frozenset[Limited]
    ids: Mapping[Limited, int]
    now: float
    at: float = field(default_factory=time.monotonic)
    free: dict[frozenset[str], SiteRules] = field(default_factory=dict)
    """At which CEs, of those with limits of their own, these rules, which have no delays, hold no match back.

    Any thread that finds it out notes it: all find the same.
    """

    def suits(self, rules: SiteRules) -> bool:
        """Whether it is of these limits, and none of their gauges is to be counted anew."""
        return not self.due & rules.running.keys() and self.ids.keys() == rules.limits

    def age_s(self) -> float:
        """For how long it has been known."""
        return time.monotonic() - self.at

    def time_now(self) -> float:
        """The database's time now."""
        return self.now + self.age_s()


@dataclass(slots=True)
class Limits:
    """The running limits and delays of all sites."""

    _known: tuple[Config | None, float, dict[str, SiteRules]] = field(default_factory=lambda: (None, 0.0, {}))
    """How often jobs are counted, s, and the rules by site. What was read of a configuration stays with it: threads may be at
    different ones for a moment.
    """
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _counts_took_s: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """The last two at each site: one that took long by chance is forgiven."""

    def has(self, site: str) -> bool:
        """Whether there are any at the site."""
        return bool(self._rules_of(site))

    def at(self, site: str, ces: Collection[str] = ()) -> Held:
        """What holds back matches at the site now: `values` by attribute, `waits_s` where a delay does, `why` each in words.

        With what other processes did a moment ago; `passing` is exact.
        """
        if not (rules := self._rules_of(site)):
            return FREE
        seen, at = self._seen.get(site), rules.ces.intersection(ces)
        # Without delays it is another only once the gauges are, and the usual answer is that nothing holds a match back.
        if seen is not None and seen.free.get(at) is rules and seen.age_s() <= FREE_FRESH_S:
            return FREE
        if seen is None or not seen.suits(rules) or seen.age_s() > FREE_FRESH_S:
            seen = self._read(site, rules)
        limits = rules.at(at)
        found = held(limits, rules, seen.gauges, seen.time_now())
        if found and seen.age_s() > FRESH_S:
            seen = self._read(site, rules)
            found = held(limits, rules, seen.gauges, seen.time_now())
        if not found and not rules.delays and seen.suits(rules):
            seen.free[at] = rules
        return found

    def attributes(self, site: str) -> frozenset[str]:
        """Those of which a value is limited at the site."""
        return self._rules_of(site).attributes

    def passing(self, site: str, values: Values, ces: Collection[str] = ()) -> Passing | None:
        """What the lease of a job with these values has to pass at the site (`Ask.limits`); None: nothing."""
        rules = self._rules_of(site)
        if not (limits := rules.on(ces, values)):
            return None
        seen = self._seen.get(site)
        if seen is None or not seen.ids.keys() >= set(limits):
            seen = self._read(site, rules)
        ids = [seen.ids.get(each, 0) for each in limits]
        may_take = self._period_s() <= BLOCKS_UP_TO_S
        taken = (
            (each, BLOCKS.take(id_, rules.running[each]))
            for each, id_ in zip(limits, ids, strict=True)
            if may_take and each in rules.running and each not in rules.delays
        )
        return passing(limits, rules, ids, {each: block for each, block in taken if block is not None})

    def not_matched(self, asked: Passing) -> None:
        """No job came of what was to pass these limits."""
        for block in asked.blocks:
            block.not_made()

    def noting(self, site: str, ces: Collection[str], pilot: UUID, request: UUID) -> list[Call]:
        """What notes at which CEs the pilot is, where jobs there are counted: to be run with the lease, behind it."""
        if not ces or not (counted := self._rules_of(site).counted_ces()):
            return []
        noted = set(ces) if len(ces) <= MOST_CES else counted & set(ces)
        return [_PILOT_CE.with_values(pilot, request, sorted(noted))]

    def matched(self, site: str, passed: Passing) -> None:
        """A job was leased that passed these limits: this process knows it as soon as that is committed."""
        transaction.on_commit(partial(self._matched, site, passed))

    def _matched(self, site: str, passed: Passing) -> None:
        for block in passed.blocks:
            block.made()
        # What is made under blocks alone was counted with them.
        if passed.ids and (seen := self._seen.get(site)) is not None:
            after = matched(passed.limits, self._rules_of(site), seen.gauges, seen.time_now())
            self._seen[site] = replace(seen, gauges={**seen.gauges, **after}, free={})

    def refused(self, site: str, asked: Passing, took_s: float) -> Held:
        """Which of these limits refused a match that was tried up to so many seconds ago; FREE: none, there was no job."""
        rules = self._rules_of(site)
        seen = self._read(site, rules)
        return held(asked.limits, rules, seen.gauges, seen.now - took_s)

    def left(self, site: str) -> dict[Limited, int]:
        """How many jobs may yet come under each running limit of the site; nobody else passes them until the caller's transaction
        ends. Not of its CEs.
        """
        rules = self._rules_of(site)
        if not (limits := [on for on in rules.running if not on.ce]):
            return {}
        ids = self._read(site, rules).ids
        with connection.cursor() as cursor:
            cursor.execute(_LOCKED, [[ids[on] for on in limits if on in ids]])
            there = dict(cursor.fetchall())
        return {on: rules.running[on] - n if (n := there.get(ids.get(on, 0))) is not None else 0 for on in limits}

    def submitted(self, site: str, jobs: Mapping[Limited, int]) -> None:
        """So many jobs came under each of these limits, in the transaction in which they were locked (`left`)."""
        with connection.cursor() as cursor:
            cursor.execute(_SUBMITTED, [*_columns(jobs), [jobs[on] for on in sorted(jobs)], site])
        self._seen.pop(site, None)

    def forget(self) -> None:
        """Know nothing, as a new process."""
        self._seen.clear()
        self._counts_took_s.clear()
        self._known = (None, 0.0, {})
        BLOCKS.forget()

    def _configured(self) -> tuple[float, dict[str, SiteRules]]:
        # Not by its revision: after a rollback, or a backup that was restored, the same number comes again with other limits.
        of, period_s, known = self._known
        if of is not (config := gdpconfig.current()):
            _, period_s, known = self._known = config, float(config.value("dispatch", "RUNNING_COUNT_PERIOD")), {}
        return period_s, known

    def _period_s(self) -> float:
        return self._configured()[0]

    def _rules_of(self, site: str) -> SiteRules:
        _, known = self._configured()
        if (rules := known.get(site)) is None:
            rules = known[site] = site_rules(site)
        return rules

    def _read(self, site: str, rules: SiteRules) -> _Seen:
        """The gauges of a site, after the jobs there were counted, where that is due."""
        took_s = self._counts_took_s.get(site, ())
        period_s = max(self._period_s(), min(COUNT_AT_MOST * min(took_s, default=0.0), BLOCKS_UP_TO_S))
        seen = _see(site, period_s)
        if seen.gauges.keys() != rules.limits:
            _keep_only(site, rules.limits, seen.gauges.keys())
            seen = _see(site, period_s)
        if seen.due & rules.running.keys():
            last_s = _count(site, [(on, seen.ids[on]) for on in sorted(rules.running) if on in seen.ids])
            if last_s is not None:
                self._counts_took_s[site] = (*took_s[-1:], last_s)
                seen = _see(site, period_s)
        self._seen[site] = seen
        return seen


LIMITS = Limits()


def _columns(limits: Iterable[Limited]) -> tuple[list[str], list[str], list[str]]:
    some = sorted(limits)
    return [each.attribute for each in some], [each.value for each in some], [each.ce for each in some]


def _see(site: str, period_s: float) -> _Seen:
    """The gauges of a site; those are due that were counted longer ago than the period."""
    rows = [(Limited(*row[:3]), row) for row in _SEEN.run(site, period_s)]
    gauges, ids = {on: Gauge(*row[3:7]) for on, row in rows}, {on: row[9] for on, row in rows}
    return _Seen(gauges, frozenset(on for on, row in rows if row[7]), ids, rows[0][1][8] if rows else 0.0)


def _keep_only(site: str, wanted: Collection[Limited], there: Collection[Limited]) -> None:
    """Rows for the limits that are configured, and for no others once nobody has blocks of them.

    A limit that is configured again while matches are made under its old blocks has to know of them: the row stays, not counted.
    """
    if new := set(wanted) - set(there):
        with connection.cursor() as cursor:
            cursor.execute(_NEW, [site, *_columns(new)])
    if gone := set(there) - set(wanted):
        with transaction.atomic(savepoint=False), connection.cursor() as cursor:
            cursor.execute(_UNWANTED, [site, *_columns(gone)])
            ids = [id_ for (id_,) in cursor.fetchall()]
            kept = kept_blocks(ids)
            cursor.execute(_NOT_COUNTED, [[*kept]])
            cursor.execute(_GONE, [[id_ for id_ in ids if id_ not in kept]])


def _count(site: str, gauges: Sequence[tuple[Limited, int]]) -> float | None:
    """Count the jobs at the site anew for these limits: how many seconds their rows were locked; None: somebody else is at it.

    Their rows are locked first: each match that was noted is either committed, and seen, or comes after; or it is one of a block.
    """
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(_ONE_COUNTS, [site])
        if not cursor.fetchone()[0]:
            return None
        limits, ids = [on for on, _ in gauges], [id_ for _, id_ in gauges]
        locking(ids).run()
        began = time.monotonic()
        kept = kept_blocks(ids)
        counts = held_slots(site, limits)
        taken, blocks = zip(*(stored(kept.get(id_, {})) for id_ in ids), strict=True)
        cursor.execute(_COUNTED, [ids, [counts[each] for each in limits], [*taken], [*blocks]])
    return time.monotonic() - began
