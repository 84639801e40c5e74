"""Small look-ups of tasks."""

from __future__ import annotations

from workqueues.models import Task
from workqueues.states import TASK


def namesake(vo: str, prod_source_label: str, user_name: str, task_name: str) -> Task | None:
    """The newest task of the user with this name and source label (facts on commands 2.5)."""
    tasks = Task.objects.filter(vo=vo, user_name=user_name, task_name=task_name, prod_source_label=prod_source_label)
    return tasks.order_by("-id").first()


def active_tasks(vo: str, prod_source_label: str, user_name: str, most: int) -> int:
    """How many active tasks of this source label the user has; counted up to `most`."""
    tasks = Task.objects.filter(vo=vo, user_name=user_name, prod_source_label=prod_source_label, status__in=TASK.active)
    return tasks[:most].count()
