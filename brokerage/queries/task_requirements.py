"""What the jobs of a task require besides their slots, read from the task."""

from __future__ import annotations

from collections.abc import Collection

from brokerage.rules.dispatch.task_requirement import TaskRequirement, task_requirement
from workqueues.models import Task


def requirement_of(task: Task) -> TaskRequirement:
    """Of one task, with its parameters."""
    return task_requirement(task.user_name, task.working_group, task.architecture, task.params.task_params)


def requirements_of(task_ids: Collection[int]) -> dict[int, TaskRequirement]:
    """Of these tasks; one statement."""
    tasks = Task.objects.select_related("params").filter(id__in=list(task_ids), params__isnull=False)
    return {task.id: requirement_of(task) for task in tasks}
