"""The limits of retries that are set for a task, and the one of them that its files can be beyond."""

from __future__ import annotations

from django.db.models import Max

from broker_site.foundation import gdpconfig
from workqueues.models import File, ParentBroker, PulledElement, Task
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


def over_at_parent(task: Task) -> str:
    """Why no retry of a task that does an element of the parent broker is accepted; empty where one is. Once it has ended, or was
    given back or taken away, the parent is told nothing more of it, and others may do the same files.
    """
    element = PulledElement.objects.filter(task_id=task.id).first()
    if element is None:
        return ""
    if not (task.ended_at or element.ended_at or element.refused or element.given_back):
        return ""
    parent, of = ParentBroker.objects.order_by("id").first(), f"element {element.element_id} of task {element.parent_task_id}"
    where = f"the parent broker {parent.url}" if parent else "the parent broker"
    return f"it did {of} of {where}, which would hear nothing of another try here; retry task {element.parent_task_id} there"
