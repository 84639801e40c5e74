"""What follows from the scouts of tasks: measured needs, and the end of scouting.

A task on which an agent works just now is left for the next time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation.agency.look import look_after_commit
from workqueues.ledger.commands import DONE
from workqueues.ledger.moves import move_task
from workqueues.ledger.resource_types import resource_type_of
from workqueues.ledger.task_notes import note_step
from workqueues.models import Task
from workqueues.rules.jobs.split_rule import SCOUTS_OVER, changed
from workqueues.rules.task.automatic_steps import MEASURED
from workqueues.rules.task.scouts import ScoutVerdict


class Assessment(NamedTuple):
    """What the finished scouts of a task show. `columns`: of the task, with `gb_per_job` for its split rule; `verdict`: what
    follows at their end, None before; `n_jobs`: how many have finished.
    """

    task_id: int
    columns: Mapping[str, Any]
    verdict: ScoutVerdict | None = None
    n_jobs: int = 0


def free_tasks(task_ids: Iterable[int], status: str) -> list[Task]:
    """Those of these tasks that are in this state and that nobody has, locked for the transaction."""
    free = Q(locked_by="") | Q(locked_time__lt=Now())
    locked = Task.objects.select_for_update(no_key=True, skip_locked=True)
    return list(locked.filter(free, id__in=list(task_ids), status=status, quarantined_at=None).order_by("id"))


def make_more(task_ids: Sequence[int]) -> int:
    """Scouts are wanted of these tasks: they rest no longer. How many."""
    if not task_ids:
        return 0
    with transaction.atomic():
        tasks = free_tasks(task_ids, "scouting")
        Task.objects.filter(id__in=[task.id for task in tasks]).update(next_look_at=None, error_dialog="")
        if tasks:
            look_after_commit("generate")
        return len(tasks)


def assess(assessments: Sequence[Assessment], who: str) -> int:
    """Write what was measured, and move on the tasks whose scouts have ended: how many of these."""
    if not assessments:
        return 0
    with transaction.atomic():
        by_id = {one.task_id: one for one in assessments}
        tasks = free_tasks(by_id, "scouting")
        moved = 0
        for task in tasks:
            one = by_id[task.id]
            columns = _columns(task, one.columns)
            _note(task, columns)
            if one.verdict is None:
                Task.objects.filter(id=task.id).update(assessment_time=Now(), n_measured=one.n_jobs, **columns)
                continue
            _end(task, one.verdict, {**columns, "n_measured": one.n_jobs}, who)
            moved += 1
        return moved


def note_needs(assessments: Sequence[Assessment]) -> int:
    """Write what was measured of the finished jobs of running tasks: of how many."""
    if not assessments:
        return 0
    with transaction.atomic():
        by_id = {one.task_id: one for one in assessments}
        tasks = free_tasks(by_id, "running")
        for task in tasks:
            columns = _columns(task, by_id[task.id].columns)
            _note(task, columns)
            Task.objects.filter(id=task.id).update(assessment_time=Now(), n_measured=by_id[task.id].n_jobs, **columns)
        return len(tasks)


def _columns(task: Task, measured: Mapping[str, Any]) -> dict[str, Any]:
    """All that changes of the task: what follows from its new memory, and nGBPerJob in its split rule, too."""
    columns = dict(measured)
    if gb := columns.pop("gb_per_job", None):
        columns["split_rule"] = changed(task.split_rule, "NG", gb)
    if "ram_count" in columns:
        columns["resource_type"] = resource_type_of(task, columns)
    return {name: value for name, value in columns.items() if getattr(task, name) != value}


def _note(task: Task, columns: Mapping[str, Any]) -> None:
    if columns:
        before = {name: getattr(task, name) for name in columns}
        note_step(task, MEASURED, "task.measured", "agent:assess", "measured by its finished jobs", before, columns)


def _end(task: Task, verdict: ScoutVerdict, columns: dict[str, Any], who: str) -> None:
    columns["assessment_time"] = Now()
    if verdict.outcome == "broken":
        move_task(task, "tobroken", who, verdict.reason, error_dialog=verdict.reason[:510], **columns)
        return
    columns["split_rule"] = changed(columns.get("split_rule", task.split_rule), "US", SCOUTS_OVER)
    if verdict.outcome == "exhausted":  # who retries it has seen the reason: it goes on with all its jobs
        move_task(task, "exhausted", who, verdict.reason, old_status="running", error_dialog=verdict.reason[:510], **columns)
    else:
        move_task(task, "scouted", who, verdict.reason, error_dialog="", **columns)


def scale_out(who: str) -> int:
    """Tasks whose scouts have ended well make all their jobs: how many."""
    with transaction.atomic():
        tasks = free_tasks(Task.objects.filter(status="scouted").values_list("id", flat=True)[:1000], "scouted")
        for task in tasks:
            over = {"split_rule": changed(task.split_rule, "US", SCOUTS_OVER), "old_status": "", "error_dialog": "", **DONE}
            move_task(task, "running", who, "all its other jobs are made", **over)
        return len(tasks)
