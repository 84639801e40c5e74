"""Look-ups of tasks: the namesakes and active tasks of a user, the parent of a task as refining sees it, who rests briefly."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import connection
from django.db.models import Q

from workqueues.models import PlannedOutput, Task, TaskChange
from workqueues.rules.refine import InputWriterFacts, ParentFacts, read_task
from workqueues.states import TASK

MOST_WRITERS = 10_000
"""Most pairs of an input and a task that writes it."""


def newest_named(vo: str, user_name: str, task_name: str, **more: str) -> Task | None:
    """The newest task of the user with this name, and `more` columns as given (facts on commands 2.5)."""
    return Task.objects.filter(vo=vo, user_name=user_name, task_name=task_name, **more).order_by("-id").first()


def active_tasks(vo: str, prod_source_label: str, user_name: str, most: int) -> int:
    """How many active tasks of this source label the user has; counted up to `most`."""
    tasks = Task.objects.filter(vo=vo, user_name=user_name, prod_source_label=prod_source_label, status__in=TASK.active)
    return tasks[:most].count()


def live_writers(vo: str, user_name: str, working_group: str, dataset_names: Sequence[str]) -> list[InputWriterFacts]:
    """The live tasks of the same owner or group that are going to write these datasets (decision F5).

    MOST_WRITERS and one more at most.
    """
    ours = Q(task__user_name=user_name) | (Q(task__working_group=working_group) if working_group else Q())
    planned = PlannedOutput.objects.filter(ours, writer__dataset_name__in=dataset_names, writer__vo=vo)
    columns = ("task_id", "task__status", "writer__dataset_name")
    rows = planned.exclude(task__status__in=TASK.final).order_by("task_id", "writer__dataset_name").values_list(*columns)
    return [InputWriterFacts(*row) for row in rows[: MOST_WRITERS + 1]]


def written_by_others(task: Task, dataset_names: Sequence[str]) -> set[str]:
    """Those of these datasets to which another task may still write. One that is at its end too makes no more files: of two that
    end at the same time each leaves the other out.
    """
    through = {*TASK.final, *TASK.ending, *TASK.accepting("aborted")}
    planned = PlannedOutput.objects.filter(writer__dataset_name__in=dataset_names, writer__vo=task.vo)
    others = planned.exclude(task_id=task.id).exclude(task__status__in=through)
    return set(others.values_list("writer__dataset_name", flat=True))


def input_writers(task: Task) -> list[InputWriterFacts]:
    """The parents of a task that were inferred at its submission, as they are now."""
    rows = task.input_writers.order_by("writer_id", "dataset_name").values_list("writer_id", "writer__status", "dataset_name")
    return [InputWriterFacts(*row) for row in rows]


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


def was_assigned(task_id: int) -> bool:
    """Whether the brokerage has chosen where the outputs of a task are collected, in a run before."""
    return TaskChange.objects.filter(task_id=task_id, old="assigning", new="ready").exists()


def shortest_rest_s(statuses: Collection[str], most_s: float) -> float | None:
    """Seconds until the first task in one of these states has rested, of those that rest at most `most_s` more; None: no task."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT extract(epoch FROM min(next_look_at) - now())::float8 FROM workqueues_task
            WHERE next_look_at > now() AND next_look_at <= now() + make_interval(secs => %s) AND status = ANY (%s)
            """,
            [most_s, sorted(statuses)],
        )
        rest_s: float | None = cursor.fetchone()[0]
        return rest_s
