"""Copies of files that tasks use or make: on which storage endpoints they are, and where there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from monitoring.queries.database import alias
from workqueues.models import CatalogueFile, File, Replica


class Copy(NamedTuple):
    """A copy of a file: its storage endpoint, and where it lies below the root of that."""

    storage: str
    path: str


def copies_of(files: Sequence[File]) -> Mapping[tuple[str, str], list[Copy]]:
    """(dataset, LFN) -> its copies, by storage endpoint; of files that were read with their datasets, in one statement."""
    copies: dict[tuple[str, str], list[Copy]] = defaultdict(list)
    if not files:
        return copies
    known = CatalogueFile.objects.filter(
        lfn__in=[f.lfn for f in files],
        dataset__name__in={f.dataset.dataset_name for f in files},
        dataset__vo__in={f.dataset.data_vo or f.dataset.vo for f in files},
    )
    replicas = Replica.objects.using(alias()).filter(file__in=known)
    columns = ("file__dataset__name", "file__lfn", "storage", "path")
    for dataset, lfn, storage, path in replicas.order_by("storage").values_list(*columns):
        copies[dataset, lfn].append(Copy(storage, path or lfn))
    return copies
