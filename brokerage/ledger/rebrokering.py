"""Closing waiting jobs so that their files are brokered anew: by time-out of their queue, or by an operator (decision D18)."""

from __future__ import annotations

from collections.abc import Sequence

from brokerage.ledger.expiry import SUB_STATUS, Leave, end_seen, log_left, page_by_page
from brokerage.queries.movable_jobs import MOVABLE, TaskAtQueue

_JOBS = """
SELECT j.id, j.epoch, j.status, j.task_id
FROM unnest(%(queues)s::int[], %(tasks)s::bigint[]) AS at(queue, task)
JOIN brokerage_job j ON j.computing_queue_id = at.queue AND j.task_id = at.task
WHERE j.ended_at IS NULL AND j.status = ANY (%(states)s) AND j.kind <> ALL (%(merging)s) AND j.id > %(after)s
ORDER BY j.id LIMIT %(limit)s
"""


def rebroker(moved: Sequence[TaskAtQueue], who: str, why: str, limit: int, leave: Leave = log_left) -> int:
    """Close the jobs of these tasks that wait at these queues: how many. One that a pilot gets meanwhile runs on.

    `why` stands in their history; `limit`: jobs looked at together.
    """
    if not moved:
        return 0
    values = {**MOVABLE, "queues": [at.queue_id for at in moved], "tasks": [at.task_id for at in moved]}
    return page_by_page(
        _JOBS,
        values,
        limit,
        lambda jobs: end_seen(jobs, "closed", who, why, sub_status=SUB_STATUS["closed"], leave=leave),
    )
