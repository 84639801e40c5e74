"""Closing waiting jobs so that their files are brokered anew: as their queue stopped, or at once by operators (decision D18)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.access.principal import Principal
from brokerage.ledger.expiry import SUB_STATUS, Leave, end_seen, log_left, page_by_page
from brokerage.models import ComputingQueue, Job
from brokerage.queries.movable_jobs import MOVABLE, JobsAtQueue, waiting_at, waiting_job, waiting_of_task
from brokerage.rules.dispatch.settlement import JobVersion
from workqueues.models import Task

BATCH = 1000
ACT = "job.rebroker"

_JOBS = """
SELECT j.id, j.epoch, j.status, j.task_id
FROM unnest(%(queues)s::int[], %(tasks)s::bigint[]) AS at(queue, task)
JOIN brokerage_job j ON j.computing_queue_id = at.queue AND j.task_id = at.task
WHERE j.ended_at IS NULL AND j.status = ANY (%(states)s) AND j.kind <> ALL (%(merging)s) AND j.id > %(after)s
ORDER BY j.id LIMIT %(limit)s
"""
_OPEN_JOBS = """
SELECT j.id, j.epoch, j.status, j.task_id FROM brokerage_job j
WHERE j.computing_queue_id IS NULL AND j.task_id = ANY (%(tasks)s) AND j.ended_at IS NULL AND j.status = ANY (%(states)s)
    AND (%(task_queues)s IS NULL OR j.task_queue_id = ANY (%(task_queues)s)) AND j.id > %(after)s
ORDER BY j.id LIMIT %(limit)s
"""


class Rebrokered(NamedTuple):
    """Jobs that were closed, and jobs that wait and stay; `why` the first of these does."""

    jobs: int
    stay: int = 0
    why: str = ""


def rebroker(waiting: Sequence[JobsAtQueue], who: str, why: str, leave: Leave = log_left) -> int:
    """Close those of the jobs that may go: how many. One that a pilot gets meanwhile runs on. `why` stands in their history."""
    moved = [at for at in waiting if not at.stay]
    if not moved:
        return 0
    bound = [at for at in moved if at.queue_id is not None]
    values = {**MOVABLE, "queues": [at.queue_id for at in bound], "tasks": [at.task_id for at in bound]}
    closed = page_by_page(_JOBS, values, BATCH, lambda jobs: close_waiting(jobs, who, why, leave)) if bound else 0
    opened = [at for at in moved if at.queue_id is None]
    task_queues = [at.task_queue_id for at in opened if at.task_queue_id is not None]
    return closed + rebroker_open([at.task_id for at in opened], who, why, leave, task_queues)


def rebroker_open(
    tasks: Sequence[int], who: str, why: str, leave: Leave = log_left, task_queues: Sequence[int] | None = None
) -> int:
    """Close the open jobs of these tasks, or those of them that wait in these task queues: how many."""
    if not tasks:
        return 0
    values = {**MOVABLE, "tasks": list(tasks), "task_queues": None if task_queues is None else list(task_queues)}
    return page_by_page(_OPEN_JOBS, values, BATCH, lambda jobs: close_waiting(jobs, who, why, leave))


def rebroker_at_queue(caller: Principal, queue: ComputingQueue, scope: VoScope) -> Rebrokered:
    """Close the jobs of these VOs that wait at a queue."""
    return _at_once(caller, f"queue {queue.name}", "", waiting_at([queue.id], scope))


def rebroker_task(caller: Principal, task: Task) -> Rebrokered:
    """Close the jobs of a task that wait, wherever they do."""
    return _at_once(caller, f"task {task.id}", task.vo, waiting_of_task(task.id))


def rebroker_job(caller: Principal, job: Job, vo: str) -> Rebrokered:
    """Close one job, if it waits."""
    waiting = waiting_job(job.id)
    if waiting is None:
        return Rebrokered(0, 1, "it does not wait for a pilot")
    if waiting.stay:
        return Rebrokered(0, 1, waiting.stay)
    audit(ACT, caller, f"job {job.id}", vo=vo)
    closed = close_waiting([JobVersion(job.id, job.epoch, job.status, job.task_id)], caller.name, _asked(caller), log_left)
    return Rebrokered(closed, 1 - closed, "" if closed else "it has just moved on")


def _at_once(caller: Principal, target: str, vo: str, waiting: Sequence[JobsAtQueue]) -> Rebrokered:
    audit(ACT, caller, target, vo=vo)
    closed = rebroker(waiting, caller.name, _asked(caller))
    stay = [at for at in waiting if at.stay]
    return Rebrokered(closed, sum(at.n for at in stay), stay[0].stay if stay else "")


def _asked(caller: Principal) -> str:
    return f"{caller.name} asked for it to be brokered anew"


def close_waiting(jobs: Sequence[JobVersion], who: str, why: str, leave: Leave) -> int:
    """Close those of the jobs that are still as seen, so that they are brokered anew: how many."""
    return end_seen(jobs, "closed", who, why, sub_status=SUB_STATUS["closed"], leave=leave)
