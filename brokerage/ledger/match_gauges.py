"""What the statement of a lease does with the gauges of running limits and delays: asks them, and counts the match (facts a6).

They are locked first, in the order of their ids: who holds them sees all matches so far, as PostgreSQL reads a row anew when it
locks it, and nobody else passes them until the transaction ends. The rule is that of `brokerage.rules.dispatch.match_limits`; a
test holds the two together.
"""

from __future__ import annotations

from typing import NamedTuple

from broker_site.foundation.sql.prepared import Call, Prepared
from brokerage.rules.dispatch.match_limits import Limited, SiteRules


class Passing(NamedTuple):
    """The limits that a match has to pass, each of them, with the ids of their gauges.

    `most` jobs, below 0: any number; `intervals_s`, 0: none. An id that is no gauge's lets nothing pass.
    """

    limits: tuple[Limited, ...]
    ids: list[int]
    most: list[int]
    intervals_s: list[float]
    bursts: list[int]

    @property
    def columns(self) -> tuple[list[int], list[int], list[float], list[int]]:
        """As values of PARAMETERS."""
        return self.ids, self.most, self.intervals_s, self.bursts


PARAMETERS = "bigint[], int[], float8[], int[]"
"""Of `fragments`: the columns of `Passing`."""

_PASSED = """limits AS MATERIALIZED (
        SELECT count(*) = cardinality({ids}) AND coalesce(bool_and(
            (({most})[n] < 0 OR (counted_at IS NOT NULL AND running + matched < ({most})[n]))
            AND (({intervals})[n] <= 0 OR free_at IS NULL
                OR free_at - make_interval(secs => (({bursts})[n] - 1) * ({intervals})[n]) <= clock_timestamp())), true) AS passed
        FROM (
            SELECT array_position({ids}, id) AS n, running, matched, counted_at, free_at FROM brokerage_matchgauge
            WHERE id = ANY ({ids}) ORDER BY id FOR NO KEY UPDATE) AS locked
    )"""
_COUNTED = """counted AS (
        UPDATE brokerage_matchgauge g SET matched = g.matched + 1,
            free_at = CASE WHEN ({intervals})[array_position({ids}, g.id)] > 0 THEN greatest(g.free_at, clock_timestamp())
                + make_interval(secs => ({intervals})[array_position({ids}, g.id)]) ELSE g.free_at END
        FROM sent WHERE g.id = ANY ({ids})
    )"""
_LOCK = Prepared(
    "lock_gauges",
    "bigint[]",
    "SELECT id FROM brokerage_matchgauge WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE",
)


def fragments(first: int) -> tuple[str, str]:
    """Two parts of a WITH: `limits`, with whether all were `passed`, and what counts one match, if `sent` has its row.

    `first`: the number of the first of their PARAMETERS.
    """
    named = {name: f"${first + i}" for i, name in enumerate(("ids", "most", "intervals", "bursts"))}
    return _PASSED.format(**named), _COUNTED.format(**named)


def locking(ids: list[int]) -> Call:
    """To lock these gauges until the transaction ends."""
    return _LOCK.with_values(sorted(ids))


def passing(limits: list[Limited], rules: SiteRules, ids: list[int]) -> Passing:
    """What a match has to pass, of these limits, which have these gauges."""
    delays = [rules.delays.get(each) for each in limits]
    return Passing(
        tuple(limits),
        ids,
        [rules.running.get(each, -1) for each in limits],
        [delay.interval_s if delay else 0.0 for delay in delays],
        [delay.burst if delay else 1 for delay in delays],
    )
