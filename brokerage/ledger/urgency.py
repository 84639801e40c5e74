"""Another priority or share of tasks, with their jobs: those that wait move to the task queue of the new share.

A task on which an agent works is left for the next time: jobs that are being made have the old share. A job that somebody has
just now, as a pilot that takes it, stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from brokerage.ledger.task_queues import SAME_BUT_SHARE, TaskQueueKey
from workqueues.ledger.elements.priorities import follow_priorities
from workqueues.ledger.task_notes import note_step
from workqueues.models import Task
from workqueues.rules.task.automatic_steps import BOOST, AutomaticStep
from workqueues.states import TASK

_COLUMNS = ", ".join(TaskQueueKey._fields)
_WITH_NEW_SHARE = ", ".join("t.gshare" if name == "gshare" else f"q.{name}" for name in TaskQueueKey._fields)

NEW_QUEUES = f"""
INSERT INTO brokerage_taskqueue ({_COLUMNS})
SELECT DISTINCT {_WITH_NEW_SHARE}
FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id LEFT JOIN brokerage_jobopening o ON o.job_id = j.id
    JOIN brokerage_taskqueue q ON q.id IN (j.task_queue_id, o.task_queue_id)
WHERE j.task_id = ANY(%(tasks)s) AND j.ended_at IS NULL AND q.gshare <> t.gshare
ORDER BY {", ".join(str(place) for place in range(1, len(TaskQueueKey._fields) + 1))}
ON CONFLICT ON CONSTRAINT task_queue_requirements_once DO UPDATE SET used_at = now()
"""
"""Locked until the commit, so that nobody removes them before jobs wait there."""
_MOVE_JOBS = f"""
WITH mine AS (
    SELECT id FROM brokerage_job WHERE task_id = ANY(%(tasks)s) AND ended_at IS NULL ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE brokerage_job j SET priority = greatest(j.priority, t.current_priority), task_queue_id = n.id,
    ready_priority = CASE WHEN j.status = 'activated' THEN -greatest(j.priority, t.current_priority) END
FROM mine, workqueues_task t, brokerage_taskqueue q, brokerage_taskqueue n
WHERE j.id = mine.id AND t.id = j.task_id AND q.id = j.task_queue_id AND n.gshare = t.gshare AND {SAME_BUT_SHARE}
"""
MOVE_OPENINGS = f"""
UPDATE brokerage_jobopening o SET task_queue_id = n.id
FROM brokerage_job j, workqueues_task t, brokerage_taskqueue q, brokerage_taskqueue n
WHERE j.task_id = ANY(%(tasks)s) AND j.ended_at IS NULL AND o.job_id = j.id AND t.id = j.task_id AND q.id = o.task_queue_id
    AND q.gshare <> t.gshare AND n.gshare = t.gshare AND {SAME_BUT_SHARE}
"""


class Urgency(NamedTuple):
    """What a task is to have, and why."""

    task_id: int
    priority: int
    gshare: str
    why: str
    step: AutomaticStep = BOOST


def raise_tasks(wanted: Sequence[Urgency]) -> int:
    """Give working tasks and their live jobs another priority, which is never lower, and another share: how many tasks."""
    with transaction.atomic():
        by_id = {one.task_id: one for one in wanted}
        free = Q(locked_by="") | Q(locked_time__lt=Now())
        locked = Task.objects.select_for_update(no_key=True, skip_locked=True)
        tasks = list(locked.filter(free, id__in=by_id, status__in=TASK.working).order_by("id"))
        for task in tasks:
            one = by_id[task.id]
            before = {"priority": task.current_priority, "share": task.gshare}
            task.current_priority, task.gshare = max(task.current_priority, one.priority), one.gshare
            after = {"priority": task.current_priority, "share": task.gshare}
            note_step(task, one.step, "task.boost", "agent:boost", one.why, before, after)
        Task.objects.bulk_update(tasks, ["current_priority", "gshare"])
        values = {"tasks": [task.id for task in tasks]}
        with connection.cursor() as cursor:
            cursor.execute(NEW_QUEUES, values)
            cursor.execute(_MOVE_JOBS, values)
            cursor.execute(MOVE_OPENINGS, values)
        follow_priorities(values["tasks"])
    return len(tasks)
