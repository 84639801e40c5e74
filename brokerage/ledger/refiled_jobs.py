"""Jobs that wait in task queues of before requirements told whose they are: they go to those of their owners (row D1).

Private pilots would not find them, and shares of groups not count them. After an update there are few such task queues, soon none
with jobs: what looks for them reads task queues without an owner, and of these the first jobs only.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from django.db import connection, transaction

from brokerage.ledger.task_queues import keep, task_queues
from brokerage.rules.placement.slots import Slot
from workqueues.models import Task

_WAITING = """
SELECT w.* FROM (
    SELECT j.id, j.task_id, t.computing_queue_id, t.core_count, t.ram_mb, t.disk_mb, t.walltime_s FROM brokerage_taskqueue t
    CROSS JOIN LATERAL (
        SELECT id, task_id FROM brokerage_job WHERE task_queue_id = t.id AND ready_priority IS NOT NULL
        ORDER BY ready_priority, id LIMIT %(limit)s) j
    WHERE t.owner = '' AND t.computing_queue_id IS NOT NULL LIMIT %(limit)s) w
WHERE EXISTS (
    SELECT FROM workqueues_task k JOIN workqueues_taskparams p ON p.task_id = k.id WHERE k.id = w.task_id AND k.user_name <> '')
ORDER BY w.id
"""
_LOCK = """
SELECT id FROM brokerage_job WHERE id = ANY (%s) AND ready_priority IS NOT NULL ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
_MOVE = """
UPDATE brokerage_job j SET task_queue_id = v.task_queue FROM unnest(%s::bigint[], %s::int[]) AS v(id, task_queue)
WHERE j.id = v.id
"""


class _Waiting(NamedTuple):
    id: int
    task_id: int
    queue_id: int
    cores: int
    ram_mb: int
    disk_mb: int
    walltime_s: int

    @property
    def place(self) -> tuple[int, Slot]:
        """Its computing queue, and what it asks of a slot there."""
        return self.queue_id, Slot(self.cores, self.ram_mb, self.disk_mb, self.walltime_s)


def refile(limit: int) -> int:
    """Put at most `limit` such jobs into the task queues of their owners: how many. One that somebody has just now stays.

    Raises Stale where such a task queue is removed meanwhile; the next call tries again.
    """
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, {"limit": limit})
        waiting = [_Waiting(*row) for row in cursor.fetchall()]
    return _refiled(waiting) if waiting else 0


@transaction.atomic
def _refiled(waiting: list[_Waiting]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [[job.id for job in waiting]])
        mine = {id_ for (id_,) in cursor.fetchall()}
    by_task: dict[int, list[_Waiting]] = defaultdict(list)
    for job in waiting:
        if job.id in mine:
            by_task[job.task_id].append(job)
    places: dict[int, int] = {}
    for task in Task.objects.select_related("params").filter(id__in=by_task).order_by("id"):
        own = task_queues(task, [job.place for job in by_task[task.id]])
        places |= {job.id: own[job.place] for job in by_task[task.id]}
    if places:
        keep(set(places.values()))
        with connection.cursor() as cursor:
            cursor.execute(_MOVE, [list(places), list(places.values())])
    return len(places)
