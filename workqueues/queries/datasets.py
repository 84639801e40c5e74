"""The datasets and files of a task: what its end is decided from, files that jobs could not read, secondary datasets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from workqueues.models import Dataset, File, FileChange
from workqueues.rules.task.finish import DatasetCounts
from workqueues.splitters.protocol import SecondaryRow
from workqueues.states import MASTER_TYPES, OUTPUT_TYPES

COUNTED = (
    "type", "status", "n_files", "n_files_to_be_used", "n_files_used", "n_files_finished", "n_files_failed", "n_files_missing",
    "n_events", "n_events_used", "excluded",
)  # fmt: skip


def dataset_counts(task_id: int) -> list[DatasetCounts]:
    counts = []
    for master_id, *values in Dataset.objects.filter(task_id=task_id).values_list("master_id", *COUNTED):
        columns: dict[str, Any] = {name: 0 if value is None else value for name, value in zip(COUNTED, values, strict=True)}
        counts.append(DatasetCounts(**columns, master=master_id is None))
    return counts


def output_names(task_id: int) -> list[str]:
    return list(Dataset.objects.filter(task_id=task_id, type__in=OUTPUT_TYPES).values_list("dataset_name", flat=True))


def held_files(task_id: int) -> dict[str, list[tuple[int, str]]]:
    """Dataset name -> (file id, LFN) of the held inputs of a task."""
    files: dict[str, list[tuple[int, str]]] = defaultdict(list)
    rows = File.objects.filter(task_id=task_id, status="ready").exclude(held="").order_by("id")
    for name, file_id, lfn in rows.values_list("dataset__dataset_name", "id", "lfn"):
        files[name].append((file_id, lfn))
    return files


def reporting_queues(file_ids: Sequence[int]) -> dict[int, set[str]]:
    """File -> the computing queues at which jobs could not read it; one query."""
    queues: dict[int, set[str]] = defaultdict(set)
    reports = FileChange.objects.filter(file_id__in=file_ids, new="held")
    for file_id, why in reports.values_list("file_id", "why"):
        queues[file_id].add(why.rpartition(" at ")[2])
    return queues


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
