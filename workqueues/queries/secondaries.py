"""The secondary datasets of a master: what a splitter and the jobs need to know of their files."""

from __future__ import annotations

from workqueues.models import Dataset, File
from workqueues.splitters.protocol import SecondaryRow
from workqueues.states import MASTER_TYPES


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
