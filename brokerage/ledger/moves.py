"""The one way in which jobs change their status: only along the machine, from the epoch seen, with a history row each."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from brokerage.states import JOB, LEASED

ANY_EPOCH = -1

_MOVE = """
WITH seen AS (
    SELECT j.id, j.status FROM brokerage_job j
    JOIN unnest(%(ids)s::bigint[], %(epochs)s::int[]) AS asked(id, epoch) ON asked.id = j.id
    WHERE j.status = ANY(%(sources)s) AND (asked.epoch = -1 OR {fence}) AND {only}
    ORDER BY j.id FOR UPDATE OF j
), moved AS (
    UPDATE brokerage_job j
    SET status = %(new)s, sub_status = %(sub_status)s, status_since = now(), epoch = j.epoch + %(bump)s,
        ended_at = CASE WHEN %(final)s THEN now() END,
        ready_priority = CASE WHEN %(new)s = 'activated' THEN -j.priority END,
        lease_until = CASE WHEN %(leased)s THEN j.lease_until END,
        lease_holder = CASE WHEN %(leased)s THEN j.lease_holder END,
        lease_request = CASE WHEN %(leased)s THEN j.lease_request END
    FROM seen WHERE j.id = seen.id RETURNING j.id, seen.status AS old, j.epoch
), noted AS (
    INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who, why)
    SELECT id, old, %(new)s, epoch, %(who)s, %(why)s FROM moved
)
SELECT id FROM moved ORDER BY id
"""

ONLY = {"any": "TRUE", "lease over": "j.lease_until < now()"}
"""What must still hold for a job when its row is locked, for it to move."""


def fence() -> str:
    """The condition that keeps reports of an ended lease out: the epoch asked with is the epoch of the row."""
    return "asked.epoch = j.epoch"


def move_jobs(
    ids: Sequence[int],
    new: str,
    who: str,
    why: str = "",
    *,
    epochs: Sequence[int] | None = None,
    sub_status: str = "",
    sources: Sequence[str] | None = None,
    bump: int = 0,
    only: str = "any",
) -> list[int]:
    """Move those of `ids` that are in a state from which `new` can be reached: the ids that moved, in order.

    `epochs`, parallel to `ids`, fences each move; `sources` narrows the states; `bump` ends the lease's epoch (1) or keeps it
    (0); `only` names a condition of ONLY.
    """
    if not ids:
        return []
    allowed = [s for s in JOB.sources(new) if sources is None or s in sources]
    with connection.cursor() as cursor:
        cursor.execute(
            _MOVE.format(fence=fence(), only=ONLY[only]),
            {
                "ids": list(ids),
                "epochs": list(epochs) if epochs is not None else [ANY_EPOCH] * len(ids),
                "sources": allowed,
                "new": new,
                "sub_status": sub_status[:40],
                "final": new in JOB.final,
                "leased": new in LEASED,
                "bump": bump,
                "who": who[:128],
                "why": why[:255],
            },
        )
        return [row[0] for row in cursor.fetchall()]
