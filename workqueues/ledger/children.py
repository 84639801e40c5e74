"""Children of a task that is run again: they are run again with it (seed 001, "Task retry"; facts on commands 3.2).

Not here: the children of a task that ended badly (`commands`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.db.models.functions import Now

from broker_site.foundation.agency.look import look_after_commit
from workqueues.ledger.moves import move_task
from workqueues.models import Dataset, InputWriter, Task
from workqueues.rules.task.commands import COMMANDS
from workqueues.states import MUTABLE, TASK, WRITTEN_TYPES


def retry_children(parent: Task, who: str) -> int:
    """Run the children of a task again that has just been run again, in the caller's transaction: how many; once is enough.

    One that reads what the parent writes looks for new files when all others are through; if it has ended it is executed again
    with what is new, and so are its own children then. One that only follows its parent is defined anew if it has ended. Those
    that ended badly are left alone.
    """
    named = Task.objects.filter(parent_tid=parent.id).values_list("id", flat=True)
    inferred = InputWriter.objects.filter(writer_id=parent.id).values_list("task_id", flat=True)
    ids = {*named, *inferred} - {parent.id}
    children = Task.objects.select_for_update(no_key=True).filter(id__in=ids)
    tasks = list(children.exclude(status__in=TASK.spoilt).order_by("id"))
    reads = _reading(parent, tasks)
    n = 0
    for child in tasks:
        why = f"its parent, task {parent.id}, is run again"
        if child.id in reads:
            n += _mark(reads[child.id])
            if child.status in TASK.accepting("extend"):
                _extend(child, who, why)
                n += 1
            elif child.status == "defined":
                _interrupt(child)
        elif child.status in TASK.accepting("restart") and child.parent_tid == parent.id:
            move_task(child, "registered", who, why, old_status="", start_time=None, frozen_time=None, error_dialog="")
            n += 1
    return n


def _reading(parent: Task, children: Iterable[Task]) -> dict[int, list[int]]:
    """Child -> its input datasets that the parent writes."""
    written = Dataset.objects.filter(task_id=parent.id, type__in=WRITTEN_TYPES)
    names, containers = set[str](), set[str]()
    for name, container in written.values_list("dataset_name", "container_name"):
        names.add(name)
        containers.add(container)
    read: dict[int, list[int]] = defaultdict(list)
    ids = [child.id for child in children if child.vo == parent.vo]
    inputs = Dataset.objects.filter(task_id__in=ids, type="input", excluded=False, data_vo="")
    for dataset_id, child_id in inputs.filter(dataset_name__in=names | (containers - {""})).values_list("id", "task_id"):
        read[child_id].append(dataset_id)
    return read


def _mark(dataset_ids: Iterable[int]) -> int:
    """More files may come to these datasets: how many were not known for that."""
    return Dataset.objects.filter(id__in=dataset_ids).exclude(state=MUTABLE).update(state=MUTABLE)


def _interrupt(child: Task) -> None:
    """Whoever feeds the child may have found its parent at its end: it is looked at anew."""
    Task.objects.filter(id=child.id).update(locked_by="", locked_time=None)


def _extend(child: Task, who: str, why: str) -> None:
    command = COMMANDS["incexec"]
    move_task(
        child,
        command.target,
        who,
        why,
        old_status=child.status,
        command=command.name,
        command_by=who[:128],
        command_comment=command.kept(why, {"keep": True}),
        command_time=Now(),
        error_dialog=why,
    )
    look_after_commit("command")
