"""The secondary datasets of a master: what a splitter and the jobs need to know of their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workqueues.models import Dataset, File
from workqueues.splitters.protocol import Secondary
from workqueues.states import MASTER_TYPES


class SecondaryRow(NamedTuple):
    """One file of a secondary dataset: size in bytes, 0 where unknown; `tracked`: it is used once (decision F1)."""

    id: int
    dataset_id: int
    lfn: str
    size: int
    n_events: int
    attempt_nr: int
    job_id: int | None
    boundary_id: int | None
    tracked: bool


class SecondaryFiles(NamedTuple):
    """A secondary dataset for a splitter, and its files: `rows[i]` is the file at position `i` of `secondary.files`."""

    dataset_id: int
    stream_name: str
    secondary: Secondary
    rows: Sequence[SecondaryRow]


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
