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
WITH open AS MATERIALIZED (
    SELECT t.requirement_set_id, sum(w.n) AS n FROM (
        SELECT task_queue_id, count(*) AS n FROM brokerage_job
        WHERE ended_at IS NULL AND computing_queue_id IS NULL AND status IN ({JOB.placed.sql}) GROUP BY 1
    ) AS w JOIN brokerage_taskqueue t ON t.id = w.task_queue_id GROUP BY 1
), open_at AS MATERIALIZED (
    SELECT p.computing_queue_id, round(sum(open.n / places.k))::int AS n
    FROM open JOIN brokerage_requirementplace p USING (requirement_set_id) CROSS JOIN LATERAL (
        SELECT count(*) AS k FROM brokerage_requirementplace WHERE requirement_set_id = open.requirement_set_id) AS places
    GROUP BY 1
)
SELECT q.name, q.status, ARRAY(
        SELECT DISTINCT storage_id FROM brokerage_queuestorage WHERE queue_id = q.id AND access LIKE 'read%%'),
    coalesce(j.queued, 0) + coalesce(o.n, 0), coalesce(j.running, 0)
FROM brokerage_computingqueue q LEFT JOIN (
    SELECT computing_queue_id, count(*) FILTER (WHERE status = 'running') AS running,
        count(*) FILTER (WHERE status IN ({JOB.placed.sql}) OR status IN ({JOB.starting.sql})) AS queued
    FROM brokerage_job WHERE ended_at IS NULL GROUP BY 1
) j ON j.computing_queue_id = q.id LEFT JOIN open_at o ON o.computing_queue_id = q.id ORDER BY 1
"""
"""An open job waits at each of its k queues as 1/k of one (decision H7)."""


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
