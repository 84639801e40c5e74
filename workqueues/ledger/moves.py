"""The one way in which a task or a dataset changes its status: only from the state and epoch seen, with its history row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import F
from django.db.models.functions import Now

from broker_site.foundation.agency.duties import agent_of
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.kernel.machine import NEW
from workqueues.models import Dataset, DatasetChange, Task, TaskChange
from workqueues.states import INPUT_DATASET, INPUT_TYPES, OUTPUT_DATASET, TASK


class Stale(Exception):
    """Somebody else moved or claimed the row meanwhile: nothing was written, read again."""


def task_born(task: Task, who: str, why: str) -> None:
    """Write the history row of a task just inserted."""
    TaskChange.objects.create(task_id=task.id, epoch=task.epoch, old=NEW, new=task.status, who=who, why=why[:510])


def move_task(task: Task, new: str, who: str, why: str, **columns: Any) -> None:
    """Move a task as it was read to `new` and write `columns` with it, in the caller's transaction.

    Whatever the task waited for does not hold in the new state, and the claim on it ends, unless `columns` says so. The agent
    that takes it next is told.
    Brings `task` up to date. Raises NotAllowed if the machine has no such arrow, Stale if the row is no longer as it was read.
    """
    TASK.check(task.status, new)
    columns["ended_at"] = Now() if new in TASK.final else None
    if new in TASK.final:
        columns["command"] = ""
    columns = {"next_look_at": None, "locked_by": "", "locked_time": None, **columns}
    moved = Task.objects.filter(id=task.id, status=task.status, epoch=task.epoch).update(
        status=new, status_since=Now(), epoch=F("epoch") + 1, modification_time=Now(), **columns
    )
    if moved != 1:
        raise Stale(f"task {task.id} is no longer {task.status} of epoch {task.epoch}")
    TaskChange.objects.create(task_id=task.id, epoch=task.epoch + 1, old=task.status, new=new, who=who, why=why[:510])
    if columns["next_look_at"] is None and (duty := agent_of(new)) is not None:
        look_after_commit(duty.name)
    task.refresh_from_db()


def datasets_born(datasets: Iterable[Dataset], who: str, why: str) -> None:
    """Write the history rows of datasets just inserted."""
    DatasetChange.objects.bulk_create(
        DatasetChange(dataset_id=d.id, task_id=d.task_id, epoch=d.epoch, old=NEW, new=d.status, who=who, why=why[:510])
        for d in datasets
    )


def move_dataset(dataset: Dataset, new: str, who: str, why: str, **columns: Any) -> None:
    """Move a dataset as it was read to `new` and write `columns` with it; raises as `move_task`."""
    machine = INPUT_DATASET if dataset.type in INPUT_TYPES else OUTPUT_DATASET
    machine.check(dataset.status, new)
    moved = Dataset.objects.filter(id=dataset.id, status=dataset.status, epoch=dataset.epoch).update(
        status=new, status_since=Now(), epoch=F("epoch") + 1, modification_time=Now(), **columns
    )
    if moved != 1:
        raise Stale(f"dataset {dataset.id} is no longer {dataset.status} of epoch {dataset.epoch}")
    DatasetChange.objects.create(
        dataset_id=dataset.id,
        task_id=dataset.task_id,
        epoch=dataset.epoch + 1,
        old=dataset.status,
        new=new,
        who=who,
        why=why[:510],
    )
    dataset.refresh_from_db()
