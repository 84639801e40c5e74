"""The parent of a task as refining sees it."""

from __future__ import annotations

from workqueues.models import Dataset, Task
from workqueues.rules.refine import ParentFacts


def parent_facts(task: Task) -> ParentFacts | None:
    """The parent's status and outputs; None when the task has no parent."""
    if task.parent_tid is None or task.parent_tid == task.id:
        return None
    return parent_of(Task.objects.filter(id=task.parent_tid).first())


def parent_of(parent: Task | None) -> ParentFacts | None:
    """What refining needs of a parent; its outputs are known once it is defined."""
    if parent is None:
        return None
    outputs = Dataset.objects.filter(task_id=parent.id, type__in=["output", "log"]).values_list("dataset_name", flat=True)
    return ParentFacts(parent.id, parent.status, frozenset(outputs))


def named_parent(vo: str, user_name: str, task_name: str) -> Task | None:
    """The newest task of the user with this name."""
    return Task.objects.filter(vo=vo, user_name=user_name, task_name=task_name).order_by("-id").first()
