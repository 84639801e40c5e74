"""The datasets and files of a task: what its end is decided from, files that jobs could not read, secondary datasets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Q
from django.db.models.functions import Now

from workqueues.models import Dataset, File, FileChange
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.jobs.held_files import REPORTED, STORAGE_IS_BACK, HeldFile
from workqueues.rules.jobs.staging import STAGED_FIRST
from workqueues.rules.refine import DatasetKey, dataset_key
from workqueues.rules.task.finish import DatasetCounts, is_through, masters
from workqueues.splitters.protocol import SecondaryRow
from workqueues.states import INPUT_FILE, MASTER_TYPES, MUTABLE, OUTPUT_TYPES, WRITTEN_TYPES

COUNTED = (
    "type", "status", "n_files", "n_files_to_be_used", "n_files_used", "n_files_finished", "n_files_failed", "n_files_missing",
    "n_events", "n_events_used", "excluded",
)  # fmt: skip


def dataset_counts(task_id: int) -> list[DatasetCounts]:
    return counts_by_task([task_id]).get(task_id, [])


def counts_by_task(task_ids: Collection[int]) -> dict[int, list[DatasetCounts]]:
    """The counters of all datasets of these tasks."""
    by_task: dict[int, list[DatasetCounts]] = defaultdict(list)
    rows = Dataset.objects.filter(task_id__in=task_ids).order_by("id").values_list("task_id", "master_id", "state", *COUNTED)
    for task_id, master_id, state, *values in rows:
        columns: dict[str, Any] = {name: 0 if value is None else value for name, value in zip(COUNTED, values, strict=True)}
        by_task[task_id].append(DatasetCounts(**columns, master=master_id is None, mutable=state == MUTABLE))
    return by_task


def output_names(task_id: int) -> list[str]:
    """The datasets that the task makes for its users."""
    return list(Dataset.objects.filter(task_id=task_id, type__in=OUTPUT_TYPES).values_list("dataset_name", flat=True))


def written_names(task_id: int) -> list[str]:
    """All datasets that its jobs write to, with those of files that are merged later."""
    return list(Dataset.objects.filter(task_id=task_id, type__in=WRITTEN_TYPES).values_list("dataset_name", flat=True))


def through_since_read(task_id: int) -> bool | None:
    """Whether all files of the inputs of a task are through that it follows, so that it waits for more; None: they were not read
    before, or it did not wait for more.
    """
    if not Dataset.objects.filter(task_id=task_id, status="toupdate").exists():
        return None
    return all(is_through(counts) for counts in masters(dataset_counts(task_id)))


def next_reading(task_id: int) -> datetime | None:
    """When the first input of a task that is open is read again."""
    followed = Dataset.objects.filter(task_id=task_id, excluded=False)
    due: datetime | None = followed.aggregate(due=Min("state_check_expiration"))["due"]
    return due


def files_to_look_for(task_id: int) -> dict[DatasetKey, list[HeldFile]]:
    """Dataset -> the inputs of a task that are to be looked for on storage now: held ones, and those that are gone."""
    files: dict[DatasetKey, list[HeldFile]] = defaultdict(list)
    rows = File.objects.filter(task_id=task_id, look_due__lte=Now(), status__in=("ready", *INPUT_FILE.gone)).order_by("id")
    columns = ("id", "lfn", "status", "held", "held_storage", "absent_since")
    named = ("dataset__vo", "dataset__dataset_name", "dataset__data_vo")
    for vo, name, data_vo, *file in rows.values_list(*named, *columns):
        files[dataset_key(vo, name, data_vo)].append(HeldFile(*file))
    return files


def reporting_queues(file_ids: Sequence[int]) -> dict[int, set[str]]:
    """File -> the computing queues at which jobs could not read it, since it was last found again; one query."""
    queues: dict[int, set[str]] = defaultdict(set)
    changes = FileChange.objects.filter(file_id__in=file_ids).filter(Q(new="held") | Q(old__in=INPUT_FILE.gone)).order_by("id")
    for file_id, new, why in changes.values_list("file_id", "new", "why"):
        if new != "held":
            queues.pop(file_id, None)
        elif why.startswith(REPORTED):
            queues[file_id].add(why.rpartition(" at ")[2])
    return queues


def waits_for_storages(file_ids: Sequence[int]) -> dict[int, int]:
    """File -> how often it has waited for a storage that was then found to be up; files that never did are left out."""
    waits = FileChange.objects.filter(file_id__in=file_ids, old="held", new="ready", why__endswith=STORAGE_IS_BACK)
    return dict(waits.values_list("file_id").annotate(n=Count("id")).order_by())


def files_of_masters(task_id: int) -> tuple[dict[str, list[NewFile]], int | None]:
    """Dataset -> the files of it that a task has as a master, in the order of their use; and the number of the last event in
    them, None where one is not known.
    """
    rows = File.objects.filter(task_id=task_id, type="input", dataset__master=None).order_by("dataset_id", "id")
    files: dict[str, list[NewFile]] = defaultdict(list)
    last: int | None = 0
    columns = ("lfn", "fsize", "checksum", "guid", "n_events", "boundary_id", "lumi_block_nr", "first_event")
    for name, *values in rows.values_list("dataset__dataset_name", *columns).iterator():
        file = NewFile(*values)
        files[name].append(file)
        if last is not None:
            counted = file.first_event is not None and file.n_events is not None
            last = max(last, (file.first_event or 0) + (file.n_events or 0) - 1) if counted else None
    return files, last


def files_not_gone(task_id: int) -> set[str]:
    """The names of input files that a task has and that are not lost or damaged."""
    return set(
        File.objects.filter(task_id=task_id, type="input").exclude(status__in=INPUT_FILE.gone).values_list("lfn", flat=True)
    )


def staging_blocks(task_id: int) -> dict[str, set[int]]:
    """Dataset -> its lumi blocks of which files are yet to be staged."""
    staged = File.objects.filter(task_id=task_id, held__startswith=STAGED_FIRST, status="ready", lumi_block_nr__isnull=False)
    blocks: dict[str, set[int]] = defaultdict(set)
    for name, block in staged.exclude(held="").values_list("dataset__dataset_name", "lumi_block_nr").distinct():
        if block is not None:
            blocks[name].add(block)
    return blocks


def secondaries_of(master: Dataset) -> list[Dataset]:
    """The datasets that are dealt out beside `master`, by id: those of its task, which all its masters share."""
    ready = Dataset.objects.filter(task_id=master.task_id, type__in=MASTER_TYPES, excluded=False, status="ready")
    return list(ready.filter(master__isnull=False).order_by("id"))


def all_files(dataset_id: int) -> list[SecondaryRow]:
    """The files of an untracked dataset that can be read, by id: a use leaves them as they are."""
    files = File.objects.filter(dataset_id=dataset_id, status="ready", held="").order_by("id")
    columns = files.values_list("id", "dataset_id", "lfn", "fsize", "n_events", "attempt_nr", "boundary_id")
    return [
        SecondaryRow(i, of, lfn, size or 0, events or 0, tries, None, boundary, False)
        for i, of, lfn, size, events, tries, boundary in columns
    ]
