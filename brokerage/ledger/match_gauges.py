"""What a lease does with the gauges of running limits and delays: asks them, and counts the match (facts a6).

They are asked by the statement that takes the job, without a lock, and counted by one behind it: nobody else passes them from
there to the commit, and the shorter that is the more matches there are. Where there is much room a thread has blocks of matches,
which are not counted again (`match_blocks`). What was no longer so when it came to be counted undoes
the whole lease. They are locked in the order of their ids, after jobs and before datasets, as the submission of jobs does,
which waits for no job: that is why they are not counted last. PostgreSQL reads a row anew when it locks it. The rule is that of
`brokerage.rules.dispatch.match_limits`; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from broker_site.foundation.sql.prepared import Call, Prepared
from brokerage.ledger.match_blocks import Block, holds
from brokerage.rules.dispatch.match_limits import Limited, SiteRules


class Passing(NamedTuple):
    """The limits that a match has to pass, each of them, with the ids of the gauges of those that it is counted for.

    `most` jobs, below 0: any number; `intervals_s`, 0: none. An id that is no gauge's lets nothing pass. `blocks`: those of the
    other limits, under which it is made.
    """

    limits: tuple[Limited, ...]
    ids: list[int]
    most: list[int]
    intervals_s: list[float]
    bursts: list[int]
    blocks: Sequence[Block] = ()

    @property
    def gauges(self) -> tuple[list[int], list[int], list[float], list[int]]:
        """As values of GAUGES."""
        return self.ids, self.most, self.intervals_s, self.bursts

    @property
    def columns(self) -> tuple[list[int], list[int], list[float], list[int], list[int], float]:
        """As values of PARAMETERS."""
        return *self.gauges, *self.blocks_columns

    @property
    def blocks_columns(self) -> tuple[list[int], float]:
        """As values of BLOCKS."""
        return [block.id for block in self.blocks], min((block.until for block in self.blocks), default=0.0)


NO_BLOCKS: Mapping[Limited, Block] = MappingProxyType({})
GAUGES = "bigint[], int[], float8[], int[]"
BLOCKS = "bigint[], float8"
"""Of `holds`."""
PARAMETERS = f"{GAUGES}, {BLOCKS}"
"""Of `asked`: the columns of `Passing`."""


def _passes(first: int) -> str:
    """The condition that the gauge `g` lets a match pass, with limit `n`; `first`: the number of the first of PARAMETERS."""
    return f"""((${first + 1})[n] < 0 OR g.counted_at IS NOT NULL AND g.running + g.matched < (${first + 1})[n])
        AND ((${first + 2})[n] <= 0 OR g.free_at IS NULL
            OR g.free_at - make_interval(secs => ((${first + 3})[n] - 1) * (${first + 2})[n]) <= clock_timestamp())"""


# Where a limit is not passed the number breaks a rule of the table, and with it the transaction.
COUNTING = f"""
UPDATE brokerage_matchgauge g
SET matched = CASE WHEN ({_passes(first=3)}) THEN g.matched + 1 ELSE -1 END,
    free_at = CASE WHEN ($5)[n] > 0
        THEN greatest(g.free_at, clock_timestamp()) + make_interval(secs => ($5)[n]) ELSE g.free_at END
FROM (
    SELECT id, array_position($3, id) AS n FROM brokerage_matchgauge
    WHERE id = ANY ($3) AND EXISTS ({{job}}) ORDER BY id FOR NO KEY UPDATE) AS locked
WHERE g.id = locked.id
"""
"""Counts a match of the pilot $1 with the request $2, if the query `job` has a row."""
_NEW_JOB = "SELECT FROM brokerage_job WHERE lease_holder = $1 AND lease_request = $2 AND status = 'sent' AND status_since = now()"
COUNTING_TYPES = f"uuid, uuid, {GAUGES}"
_COUNT = Prepared("count_match", COUNTING_TYPES, COUNTING.format(job=_NEW_JOB))
_LOCK = Prepared(
    "lock_gauges",
    "bigint[]",
    "SELECT id FROM brokerage_matchgauge WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE",
)


def asked(first: int) -> str:
    """A part of a WITH: `limits`, with whether all would be `passed` now. `first`: the number of the first of its PARAMETERS."""
    return f"""limits AS MATERIALIZED (
        SELECT count(*) = cardinality(${first}) AND coalesce(bool_and(({_passes(first)})), true)
            AND {holds(f"${first + 4}", f"${first + 5}")} AS passed
        FROM brokerage_matchgauge g CROSS JOIN LATERAL (SELECT array_position(${first}, g.id) AS n OFFSET 0) AS place
        WHERE g.id = ANY (${first})
    )"""


def counting(pilot: UUID, request: UUID, limits: Passing) -> Call:
    """To count the match, if this ask got a job in the transaction; IntegrityError where it does not pass a limit after all."""
    return _COUNT.with_values(pilot, request, *limits.gauges)


def locking(ids: list[int]) -> Call:
    """To lock these gauges until the transaction ends."""
    return _LOCK.with_values(sorted(ids))


def passing(
    limits: Sequence[Limited], rules: SiteRules, ids: Sequence[int], blocks: Mapping[Limited, Block] = NO_BLOCKS
) -> Passing:
    """What a match has to pass, of these limits, which have these gauges, or blocks."""
    counted = [(each, id_) for each, id_ in zip(limits, ids, strict=True) if each not in blocks]
    delays = [rules.delays.get(each) for each, _ in counted]
    return Passing(
        tuple(limits),
        [id_ for _, id_ in counted],
        [rules.running.get(each, -1) for each, _ in counted],
        [delay.interval_s if delay else 0.0 for delay in delays],
        [delay.burst if delay else 1 for delay in delays],
        [*blocks.values()],
    )
