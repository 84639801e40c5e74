"""Look-ups of tasks: the namesakes and active tasks of a user, and the parent of a task as refining sees it."""

from __future__ import annotations

from workqueues.models import Task
from workqueues.rules.refine import ParentFacts, read_task
from workqueues.states import TASK


def newest_named(vo: str, user_name: str, task_name: str, **more: str) -> Task | None:
    """The newest task of the user with this name, and `more` columns as given (facts on commands 2.5)."""
    return Task.objects.filter(vo=vo, user_name=user_name, task_name=task_name, **more).order_by("-id").first()


def active_tasks(vo: str, prod_source_label: str, user_name: str, most: int) -> int:
    """How many active tasks of this source label the user has; counted up to `most`."""
    tasks = Task.objects.filter(vo=vo, user_name=user_name, prod_source_label=prod_source_label, status__in=TASK.active)
    return tasks[:most].count()


def parent_facts(task: Task) -> ParentFacts | None:
    """The parent's status and outputs; None when the task has no parent."""
    if task.parent_tid is None or task.parent_tid == task.id:
        return None
    return parent_of(Task.objects.filter(id=task.parent_tid).first())


def parent_of(parent: Task | None) -> ParentFacts | None:
    """What refining needs of a parent; its outputs are known from its parameters, also before it is refined."""
    if parent is None:
        return None
    return ParentFacts(parent.id, parent.status, frozenset(read_task(parent.params.task_params).output_names))
