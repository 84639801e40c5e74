"""The one way in which jobs change their status: only along the machine, from the epoch seen, with a history row each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from broker_site.foundation.sql.prepared import Call, Prepared
from brokerage.states import JOB

ANY_EPOCH = -1

_MOVE = """
WITH seen AS (
    SELECT j.id, j.status, asked.who, asked.why
    FROM brokerage_job j JOIN unnest($1, $2, $9, $10) AS asked(id, epoch, who, why) ON asked.id = j.id
    WHERE j.status = ANY($3) AND (asked.epoch = -1 OR {fence}) AND {only}
    ORDER BY j.id FOR NO KEY UPDATE OF j
), moved AS (
    UPDATE brokerage_job j
    SET status = $4, sub_status = $5, status_since = now(), epoch = j.epoch + $6,
        ended_at = CASE WHEN $7 THEN now() END,
        ready_priority = CASE WHEN $4 = 'activated' THEN -j.priority END,
        lease_until = CASE WHEN $8 THEN j.lease_until END,
        lease_holder = CASE WHEN $8 THEN j.lease_holder END,
        lease_request = CASE WHEN $8 THEN j.lease_request END,
        lease_slot = CASE WHEN $8 THEN j.lease_slot END
    FROM seen WHERE j.id = seen.id RETURNING j.id, seen.status AS old, j.epoch, seen.who, seen.why
), closed AS (
    DELETE FROM brokerage_jobopening o USING moved WHERE $7 AND o.job_id = moved.id
), noted AS (
    INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who, why) SELECT id, old, $4, epoch, who, why FROM moved
)
SELECT id FROM moved ORDER BY id
"""
_TYPES = "bigint[], int[], text[], text, text, int, bool, bool, text[], text[]"

ONLY = {"any": "TRUE", "lease over": "j.lease_until < now()"}
"""What must still hold for a job when its row is locked, for it to move."""


def fence() -> str:
    """The condition that keeps reports of an ended lease out: the epoch asked with is the epoch of the row."""
    return "asked.epoch = j.epoch"


def move_jobs(
    ids: Sequence[int],
    new: str,
    who: str | Sequence[str],
    why: str | Sequence[str] = "",
    *,
    epochs: Sequence[int] | None = None,
    sub_status: str = "",
    sources: Sequence[str] | None = None,
    bump: int = 0,
    only: str = "any",
) -> Call:
    """The move, to be run, of those of `ids` that are in a state from which `new` can be reached: a row for each that moved.

    `who` and `why` are one text for all jobs or one for each. `epochs`, parallel to `ids`, fences each move; `sources` narrows
    the states; `bump` ends the lease's epoch (1) or keeps it (0); `only` names a condition of ONLY.
    """
    return _move(fence(), only).with_values(
        list(ids),
        list(epochs) if epochs is not None else [ANY_EPOCH] * len(ids),
        [s for s in JOB.sources(new) if sources is None or s in sources],
        new,
        sub_status[:40],
        bump,
        new in JOB.final,
        new in JOB.leased,
        _for_each(who, ids, 128),
        _for_each(why, ids, 255),
    )


def _for_each(text: str | Sequence[str], ids: Sequence[int], longest: int) -> list[str]:
    return [text[:longest]] * len(ids) if isinstance(text, str) else [each[:longest] for each in text]


@cache
def _move(fence: str, only: str) -> Prepared:
    return Prepared(f"move_jobs_{only.replace(' ', '_')}", _TYPES, _MOVE.format(fence=fence, only=ONLY[only]))
