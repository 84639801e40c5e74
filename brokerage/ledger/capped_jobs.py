"""Jobs that are held back since their user or group has as many running as it may, and are handed out again once it has fewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from django.db import connection, transaction

from brokerage.ledger.moves import move_jobs
from brokerage.ledger.paused_tasks import hold_back_paused
from brokerage.ledger.ready_jobs import tell_of_jobs
from brokerage.rules.facts.job_kind import MERGING_KINDS
from workqueues.rules.throttle.user_caps import CAUSE

BATCH = 1000
ROUNDS = 2
"""Batches of one owner in a run at most; what is left is for the next, which comes at once."""
LET_GO = "its owner has room for more running jobs"

_JOBS = """
SELECT id, computing_queue_id, task_queue_id FROM brokerage_job
WHERE task_id = ANY (%(tasks)s) AND status = %(status)s AND ended_at IS NULL AND kind <> ALL (%(merging)s)
    AND (%(sub_status)s = '' OR sub_status = %(sub_status)s)
ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""


def hold_back(tasks: Collection[int], who: str, why: str) -> int:
    """Hold back the jobs of these tasks that wait for a pilot: how many. One that a pilot gets meanwhile runs."""
    return _move(tasks, "activated", "throttled", who, why)


def let_go(tasks: Collection[int], who: str) -> int:
    """Hand out those of these tasks that were held back for a cap: how many. Those of a task that is paused wait for that."""
    return _move(tasks, "throttled", "activated", who, LET_GO)


def _move(tasks: Collection[int], source: str, new: str, who: str, why: str) -> int:
    total = 0
    for _ in range(ROUNDS):
        moved = _move_batch(tasks, source, new, who, why)
        total += moved
        if moved < BATCH:
            break
    return total


def _move_batch(tasks: Collection[int], source: str, new: str, who: str, why: str) -> int:
    held = new == "throttled"
    values: dict[str, Any] = {
        "tasks": sorted(tasks),
        "status": source,
        "sub_status": "" if held else CAUSE,
        "merging": [kind.value for kind in MERGING_KINDS],
        "limit": BATCH,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_JOBS, values)
        queues = {id_: (queue, task_queue) for id_, queue, task_queue in cursor.fetchall()}
        if not queues:
            return 0
        call = move_jobs(list(queues), new, who, why, sources=[source], sub_status=CAUSE if held else "")
        moved = [id_ for (id_,) in call.run()]
        if not held:
            tell_of_jobs(Counter(queues[id_] for id_ in hold_back_paused(moved, who)))
        return len(moved)
