"""Blocks of matches under a running limit with much room: a thread that matches often takes some at once.

Each match counted at the row of its limit waits for the one before it to be committed. A block is counted there once, and its
matches touch that row no more: each holds the block's advisory lock, shared, until it is committed, and is made only before the
block ends. Who counts the jobs anew counts blocks whole, and drops one that has ended and that nobody holds before it looks at
the jobs. So a limit is never passed, whoever dies or sleeps; what a block has left over counts as used for seconds at most.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import SystemRandom

from django.db import connection

from broker_site.foundation.sql.prepared import Prepared

MOST, PART = 32, 64
"""Matches of a block at most, also as a part of the room that there is: where there is little each is counted by itself."""
LIFE_S, OFTEN_S = 1.0, 0.1
"""How long a block is used; who matched longer ago than that takes none."""
GOES_ON_S = 2 * LIFE_S
"""How long it lasts for the database: a match that was begun under it in time is not late."""
LEAST = 2


def _goes_on(until: str) -> str:
    """The condition that a block which lasts until then (seconds since 1970) goes on: none lasts longer than GOES_ON_S, unless
    the clock was set back.
    """
    return f"({until} > {_NOW} AND {until} <= {_NOW} + {GOES_ON_S})"


_NOW = "extract(epoch FROM clock_timestamp())::float8"

_BACK = "CASE WHEN g.blocks ? $4 THEN $5 ELSE 0 END"
_N = f"""CASE WHEN g.counted_at IS NULL OR ($3 - g.running - g.matched + {_BACK}) / {PART} < {LEAST} THEN 0
        ELSE least({MOST}, ($3 - g.running - g.matched + {_BACK}) / {PART}) END"""
# The commit does not wait for the disk: that of each match does, and what was committed before is on the disk by then too.
_TAKE = Prepared(
    "take_matches",
    "bigint, text, int, text, int",
    f"""
    UPDATE brokerage_matchgauge g
    SET matched = g.matched - {_BACK} + {_N},
        blocks = (g.blocks - $4) || CASE WHEN {_N} = 0 THEN '{{}}' ELSE jsonb_build_object($2,
            jsonb_build_array({_N}, extract(epoch FROM clock_timestamp())::float8 + {GOES_ON_S})) END
    FROM (SELECT set_config('synchronous_commit', 'off', true) AS commit) AS quick
    WHERE g.id = $1 AND quick.commit = 'off'
    RETURNING (g.blocks->$2->>0)::int, (g.blocks->$2->>1)::float8
    """,
)
"""A block $2 of the limit $3 in place of the block $4, of which $5 are left."""
_KEPT = f"""
SELECT g.id, b.key, (b.value->>0)::int, (b.value->>1)::float8
FROM brokerage_matchgauge g CROSS JOIN LATERAL jsonb_each(g.blocks) b
WHERE g.id = ANY (%s)
    AND ({_goes_on("(b.value->>1)::float8")} OR NOT pg_try_advisory_xact_lock(b.key::bigint))
"""
_IDS = SystemRandom()


@dataclass(slots=True)
class Block:
    """Matches that a thread may make under a limit of `most` jobs: `left` of them until `ends_at` (monotonic seconds).

    `until`: when it is over for the database, seconds since 1970, some time later. `unknown`: matches of which nobody knows how
    they ended: one whose connection broke may still be committed.
    """

    id: int
    most: int
    left: int
    ends_at: float
    until: float
    unknown: int = 0

    def is_over(self) -> bool:
        """Whether no match is to be begun under it any more."""
        return time.monotonic() >= self.ends_at

    def made(self) -> None:
        """A match under it is committed."""
        self.unknown -= 1

    def not_made(self) -> None:
        """A match under it came to nothing, for sure."""
        self.unknown -= 1
        self.left += 1


def holds(blocks: str, until: str) -> str:
    """The condition that blocks with these ids (a parameter) go on until then, and that they are held from now on."""
    return f"""(SELECT coalesce(bool_and(pg_try_advisory_xact_lock_shared(block)
            AND {_goes_on(until)}), true) FROM unnest({blocks}) AS block)"""


class MatchBlocks(threading.local):
    """The blocks of this thread, by the id of the limit's gauge."""

    def __init__(self) -> None:
        self._held: dict[int, Block] = {}
        self._asked_at: dict[int, float] = {}
        self._none_until: dict[int, float] = {}

    def take(self, gauge: int, most: int) -> Block | None:
        """The block to make a match under, which has one less; None: this match is to be counted by itself.

        How the match ended is to be told to the block.
        """
        now = time.monotonic()
        often = now - self._asked_at.get(gauge, float("-inf")) < OFTEN_S
        self._asked_at[gauge] = now
        block = self._held.get(gauge)
        if block is None or not block.left or now >= block.ends_at or block.most != most:
            # Inside a transaction a block would be counted only at its end.
            if not often or now < self._none_until.get(gauge, 0.0) or connection.in_atomic_block:
                return None
            block = self._draw(gauge, most, block, now)
        if block is not None:
            block.left -= 1
            block.unknown += 1
        return block

    def forget(self) -> None:
        """Hold nothing, as a new process."""
        self._held.clear()
        self._asked_at.clear()
        self._none_until.clear()

    def _draw(self, gauge: int, most: int, last: Block | None, now: float) -> Block | None:
        id_ = _IDS.getrandbits(62)
        self._held.pop(gauge, None)  # even if this fails: it may have been done all the same, and what was left is given back
        back = last if last is not None and not last.unknown else None  # else the row keeps it, and who counts looks at its lock
        rows = _TAKE.run(gauge, str(id_), most, str(back.id) if back else "", back.left if back else 0)
        n, until = rows[0] if rows else (None, None)
        if not n:
            self._none_until[gauge] = now + LIFE_S
            return None
        block = self._held[gauge] = Block(id_, most, n, now + LIFE_S, until)
        return block


BLOCKS = MatchBlocks()
os.register_at_fork(after_in_child=BLOCKS.forget)  # the parent goes on with its blocks


def kept_blocks(gauges: Sequence[int]) -> dict[int, dict[str, tuple[int, float]]]:
    """By gauge, all of which are locked: the blocks that go on, or that matches hold which may yet be committed.

    To be read before the jobs are counted. From here to the end of the transaction no match is made under another one.
    """
    kept: dict[int, dict[str, tuple[int, float]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_KEPT, [list(gauges)])
        for gauge, block, n, until in cursor.fetchall():
            kept.setdefault(gauge, {})[block] = n, until
    return kept


def stored(blocks: dict[str, tuple[int, float]]) -> tuple[int, str]:
    """How many matches these blocks are, and the blocks as the row of their limit has them."""
    return sum(n for n, _ in blocks.values()), json.dumps(blocks)
