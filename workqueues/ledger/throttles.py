"""Tasks that are throttled for a cause, and go on when none holds any more (decision D25)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import F, Max, Q, Value
from django.db.models.functions import Coalesce, Now

from workqueues.ledger.moves import move_task
from workqueues.models import Task, TaskThrottle
from workqueues.rules.throttle.attempts import CAUSE
from workqueues.states import TASK

BACK = tuple(TASK.outcomes("unthrottle"))
"""States to which a throttled task comes back."""

OPEN_END = timedelta(hours=1)
"""How often a task is looked at whose cause does not end by time."""


class Rest(NamedTuple):
    """How long a task makes no jobs, and why; `times`: the multiples of tries for which it has rested then."""

    task_id: int
    minutes: int
    times: int
    why: str


class Cause(NamedTuple):
    """Why a task is throttled; `why`: with its numbers."""

    task_id: int
    name: str
    why: str


def throttle(causes: Collection[Cause], names: Collection[str], period_s: float, who: str) -> int:
    """Throttle the tasks of these causes, for a period unless it is begun anew, and release those that other causes of these
    names held: how many changed their state. A task that somebody works on is left for the next time.
    """
    with transaction.atomic():
        wanted = {(cause.task_id, cause.name): cause.why[:255] for cause in causes}
        known = list(TaskThrottle.objects.filter(cause__in=names).select_related("task"))
        over = [row.id for row in known if (row.task_id, row.cause) not in wanted or row.task.status != "throttled"]
        tasks = {row.task_id for row in known} | {task_id for task_id, _ in wanted}
        rows = _idle(tasks)
        TaskThrottle.objects.filter(id__in=over, task_id__in=rows).delete()
        until = Now() + Value(timedelta(seconds=period_s))
        held = [
            TaskThrottle(task_id=task_id, cause=cause, why=why, until=until)
            for (task_id, cause), why in sorted(wanted.items())
            if task_id in rows and _may_be(rows[task_id])
        ]
        TaskThrottle.objects.bulk_create(
            held, update_conflicts=True, unique_fields=["task", "cause"], update_fields=["why", "until"]
        )
        return _follow(rows, who)


def throttle_for_tries(rests: Collection[Rest], who: str) -> int:
    """Let tasks rest whose inputs were tried so often: how many. One that somebody works on is left for the next time."""
    with transaction.atomic():
        rows = {id_: task for id_, task in _idle([rest.task_id for rest in rests]).items() if _may_be(task)}
        resting = [rest for rest in rests if rest.task_id in rows]
        for rest in resting:
            until = Now() + Value(timedelta(minutes=rest.minutes))
            TaskThrottle.objects.update_or_create(task_id=rest.task_id, cause=CAUSE, defaults={"until": until, "why": rest.why})
            Task.objects.filter(id=rest.task_id).update(num_throttled=rest.times, throttled_time=until)
        _follow(rows, who)
    return len(resting)


def throttle_while(causes: Collection[Cause], over: Collection[int], name: str, who: str) -> int:
    """Throttle the tasks of these new causes for as long as they hold, and end the cause of this name for those of which it is
    over: how many changed their state. A task that somebody works on is left for the next time.
    """
    with transaction.atomic():
        rows = _idle([*(cause.task_id for cause in causes), *over])
        TaskThrottle.objects.filter(cause=name, task_id__in=[id_ for id_ in over if id_ in rows]).delete()
        held = [c for c in causes if c.task_id in rows and _may_be(rows[c.task_id])]
        TaskThrottle.objects.bulk_create(
            [TaskThrottle(task_id=c.task_id, cause=name, why=c.why[:255]) for c in held], ignore_conflicts=True
        )
        return _follow(rows, who)


def forget_causes(task_id: int) -> None:
    """The task is throttled no more, since somebody commanded it; what still holds is seen again."""
    TaskThrottle.objects.filter(task_id=task_id).delete()


def _idle(tasks: Collection[int]) -> dict[int, Task]:
    """These tasks, locked, but for those that somebody works on."""
    free = Q(locked_by="") | Q(locked_time__lt=Now())
    locked = Task.objects.select_for_update(no_key=True, skip_locked=True).filter(free, id__in=tasks).order_by("id")
    return {task.id: task for task in locked}


def _may_be(task: Task) -> bool:
    """Whether the task can be throttled, or is. One that is being sent elsewhere waits for its jobs first."""
    if task.command == "reassign":
        return False
    state = task.old_status if task.status == "pending" else task.status
    return task.status == "throttled" or state in BACK


def _follow(tasks: Mapping[int, Task], who: str) -> int:
    """Bring these locked tasks to the state that their causes say: how many changed it."""
    holding: dict[int, list[TaskThrottle]] = {}
    for row in TaskThrottle.objects.filter(task_id__in=tasks).order_by("cause"):
        holding.setdefault(row.task_id, []).append(row)
    moved = 0
    for task in tasks.values():
        rows = holding.get(task.id, [])
        why = "; ".join(row.why for row in rows)[:510]
        ends = [row.until for row in rows if row.until is not None]
        columns = {"error_dialog": why, "next_look_at": max(ends) if ends else F("next_look_at")}
        if rows and task.status == "throttled":
            Task.objects.filter(id=task.id).update(**columns)
        elif rows:
            back = task.old_status if task.status == "pending" else task.status
            move_task(task, "throttled", who, why, old_status=back, **columns)
            moved += 1
        elif task.status == "throttled":
            move_task(task, task.old_status, who, "what it was throttled for is over", old_status="", error_dialog="")
            moved += 1
    return moved


def held_until(task_id: int) -> datetime | None:
    """Forget the causes of a locked task that have ended by time: when it is looked at again if others hold it, else None."""
    TaskThrottle.objects.filter(task_id=task_id, until__lte=Now()).delete()
    rows = TaskThrottle.objects.filter(task_id=task_id)
    later = rows.aggregate(until=Max(Coalesce("until", Now() + Value(OPEN_END))))["until"]
    return later if isinstance(later, datetime) else None
