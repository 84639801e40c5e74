"""Tasks that may be withheld from queues which are busy, and the queues with what they read and how busy they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.db import connection

from brokerage.rules.dispatch.withholding import CAUSE, QueueAtData
from brokerage.states import JOB
from workqueues.states import TASK

MOST_TASKS = 500
"""So many tasks are looked at in a run, those that are withheld first, then those of the lowest priority."""

_TASKS = f"""
SELECT t.id, t.vo, t.gshare, h.id IS NOT NULL
FROM unnest(%(labels)s::text[], %(io)s::float8[], %(priorities)s::int[]) AS l(label, io, priority)
    JOIN workqueues_task t ON t.prod_source_label = l.label AND t.io_intensity > l.io AND t.current_priority < l.priority
    LEFT JOIN workqueues_taskthrottle h ON h.task_id = t.id AND h.cause = %(cause)s
WHERE (t.status = 'throttled' AND h.id IS NOT NULL OR t.status IN ({TASK.throttling.sql})
        AND (t.status <> 'pending' OR t.old_status IN ({TASK.throttling.sql})))
    AND (t.locked_by = '' OR t.locked_time < now())
ORDER BY h.id IS NULL, t.current_priority, t.id LIMIT %(limit)s
"""

_HELD = """
SELECT h.task_id FROM workqueues_taskthrottle h JOIN workqueues_task t ON t.id = h.task_id
WHERE h.cause = %s AND (t.locked_by = '' OR t.locked_time < now())
"""

_QUEUES = f"""
SELECT q.name, q.status, ARRAY(
        SELECT DISTINCT storage_id FROM brokerage_queuestorage WHERE queue_id = q.id AND access LIKE 'read%%'),
    coalesce(j.queued, 0), coalesce(j.running, 0)
FROM brokerage_computingqueue q LEFT JOIN (
    SELECT computing_queue_id, count(*) FILTER (WHERE status = 'running') AS running,
        count(*) FILTER (WHERE status IN ({JOB.placed.sql}) OR status IN ({JOB.starting.sql})) AS queued
    FROM brokerage_job WHERE ended_at IS NULL GROUP BY 1
) j ON j.computing_queue_id = q.id ORDER BY 1
"""


class WithholdableTask(NamedTuple):
    """A task with enough I/O and of a low enough priority; `held`: it is withheld now."""

    task_id: int
    vo: str
    share: str
    held: bool


def withholdable_tasks(limits: Mapping[str, tuple[float, int]]) -> list[WithholdableTask]:
    """Those by source label: with more I/O than this, and of a lower priority."""
    if not limits:
        return []
    io, priorities = zip(*limits.values(), strict=True)
    values = {"labels": list(limits), "io": list(io), "priorities": list(priorities)}
    with connection.cursor() as cursor:
        cursor.execute(_TASKS, {**values, "cause": CAUSE, "limit": MOST_TASKS})
        return [WithholdableTask(*row) for row in cursor.fetchall()]


def withheld_tasks() -> set[int]:
    """Those that are withheld now."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [CAUSE])
        return {id_ for (id_,) in cursor.fetchall()}


def queues_at_data() -> list[QueueAtData]:
    """All queues."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES)
        return [QueueAtData(name, status, frozenset(storages), *n) for name, status, storages, *n in cursor.fetchall()]
