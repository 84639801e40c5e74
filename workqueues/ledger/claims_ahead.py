"""Claims of tasks that rest as their queues were full, beside those of lower priority that a run has claimed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

from workqueues.ledger.lost_claims import SUSPECT_AFTER
from workqueues.models import Task
from workqueues.queries.agent_work import WORK

_AHEAD = f"""
WITH chosen AS MATERIALIZED (
    SELECT t.id FROM workqueues_task t
    WHERE t.status = ANY(%(statuses)s) AND t.next_look_at > now() AND t.next_look_at <= now() + make_interval(secs => %(longest)s)
        AND t.locked_by = '' AND t.error_dialog = %(reason)s AND t.agent_faults < {SUSPECT_AFTER}
        AND t.current_priority > %(least)s AND {WORK["unused inputs"]} AND EXISTS (
            SELECT FROM workqueues_task c WHERE c.id = ANY(%(claimed)s) AND c.current_priority < t.current_priority
                AND c.vo = t.vo AND c.prod_source_label = t.prod_source_label AND c.gshare = t.gshare
                AND c.work_queue_id IS NOT DISTINCT FROM t.work_queue_id AND c.resource_type = t.resource_type)
    ORDER BY t.current_priority DESC, t.modification_time, t.id
    LIMIT %(limit)s FOR NO KEY UPDATE OF t SKIP LOCKED)
UPDATE workqueues_task t SET locked_by = %(run)s, locked_time = now() + make_interval(secs => %(seconds)s)
FROM chosen WHERE t.id = chosen.id RETURNING t.id
"""


def claim_ahead(
    run_id: str, seconds: float, tasks: Sequence[Task], statuses: Sequence[str], reason: str, longest_s: float, limit: int
) -> list[Task]:
    """The claimed tasks, and before them those of higher priority in the same unit that rest at most so long for this reason.

    A rest lets others have their turn; the room that was made meanwhile is not theirs while somebody ahead of them may use it.
    """
    values: dict[str, Any] = {
        "run": run_id,
        "seconds": seconds,
        "statuses": list(statuses),
        "reason": reason,
        "longest": longest_s,
    }
    least = min(task.current_priority for task in tasks)  # most often nobody is ahead, and no more is looked at
    with connection.cursor() as cursor:
        cursor.execute(_AHEAD, {**values, "claimed": [task.id for task in tasks], "limit": limit, "least": least})
        ids = [id_ for (id_,) in cursor.fetchall()]
    return in_turn(tasks, Task.objects.filter(id__in=ids, locked_by=run_id)) if ids else list(tasks)


def in_turn(tasks: Iterable[Task], ahead: Iterable[Task]) -> list[Task]:
    """The tasks in their order, each of those `ahead` before the first of its unit that has a lower priority."""
    ordered = list(tasks)
    for one in sorted(ahead, key=lambda task: (-task.current_priority, task.modification_time, task.id)):
        place = (
            i for i, task in enumerate(ordered) if _unit(task) == _unit(one) and task.current_priority < one.current_priority
        )
        ordered.insert(next(place, 0), one)
    return ordered


def _unit(task: Task) -> tuple[Any, ...]:
    return task.vo, task.prod_source_label, task.gshare, task.work_queue_id, task.resource_type
