"""Small look-ups of tasks."""

from __future__ import annotations

from workqueues.models import Task


def active_namesake(vo: str, user_name: str, task_name: str) -> int | None:
    """The newest task of the user with this name that has not ended."""
    tasks = Task.objects.filter(vo=vo, user_name=user_name, task_name=task_name, ended_at=None)
    return tasks.order_by("-id").values_list("id", flat=True).first()
