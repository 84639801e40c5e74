"""The limits of retries that are set for a task, and the one of them that its files can be beyond."""

from __future__ import annotations

from django.db.models import Max

from broker_site.foundation import gdpconfig
from workqueues.models import File, Task
from workqueues.rules.task.retry_limits import LIMITS, RetryFigures, retry_excess
from workqueues.states import INPUT_TYPES


def limits_of(task: Task) -> dict[str, float]:
    """Name of a limit, without the source label -> what is set for tasks like this."""
    label = task.prod_source_label
    found = {name: gdpconfig.value("retry_task", f"{name}_<label>", vo=task.vo, label=label) for name in LIMITS}
    return {name: limit for name, limit in found.items() if limit}


def most_tries(task: Task) -> int:
    """The most tries that a file of the task may have."""
    files = File.objects.filter(dataset__task_id=task.id, type__in=INPUT_TYPES)
    return files.aggregate(most=Max("max_attempt"))["most"] or 0


def most_tries_reached(task: Task) -> str:
    """Why no retry of the task is accepted, by its files; empty where one is. Without a limit no file is looked at."""
    limits = {name: limit for name, limit in limits_of(task).items() if name == "JOB_MAX_ATTEMPT"}
    if not limits:
        return ""
    excess = retry_excess(RetryFigures(task.attempt_nr, max_attempt=most_tries(task)), limits, task.prod_source_label)
    return excess.reason if excess else ""
