"""What the throttler last said: of the unit of one task, for who asks why it gets no jobs."""

from __future__ import annotations

from django.db import connections

from workqueues.models import Task, ThrottleVerdict
from workqueues.queries.agent_work import WORK
from workqueues.queries.units import Units
from workqueues.rules.throttle.units import Group, Unit
from workqueues.states import TASK


def throttle_reason(task: Task, using: str = "default") -> str:
    """Why the throttler makes no jobs for a task that has files to use, in words; empty where it does."""
    if task.status not in TASK.generating or not _has_work(task.id, using):
        return ""
    unit = unit_of_task(task, using)
    verdict = last_verdict(unit, using)
    if verdict is None:
        return ""
    if verdict.decision == "SKIP":
        return f"{unit} is throttled: {verdict.reason}"
    if verdict.least_priority is not None and task.current_priority < verdict.least_priority:
        return f"{unit} is throttled: only {verdict.reason}, and this one has {task.current_priority}"
    return ""


def unit_of_task(task: Task, using: str = "default") -> Unit:
    """The unit to which a task belongs now."""
    group = Group(task.vo, task.prod_source_label, task.gshare, task.work_queue_id or 0, task.resource_type)
    return Units.load(using).of(group)


def last_verdict(unit: Unit, using: str = "default") -> ThrottleVerdict | None:
    """The newest verdict on a unit, if there is one."""
    return (
        ThrottleVerdict.objects.using(using)
        .filter(
            vo=unit.vo,
            prod_source_label=unit.label,
            unit=unit.name,
            work_queue_id=unit.work_queue_id,
            resource_type=unit.resource_type,
        )
        .order_by("-id")
        .first()
    )


def _has_work(task_id: int, using: str) -> bool:
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {WORK['unused inputs']} FROM workqueues_task t WHERE t.id = %s", [task_id])
        found = cursor.fetchone()
    return bool(found and found[0])
