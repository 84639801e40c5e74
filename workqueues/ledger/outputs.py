"""Outputs in the local catalogue: their datasets when a task is defined, their files and replicas when a job finishes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workqueues.models import CatalogueDataset
from workqueues.queries.prepared import Call, Prepared
from workqueues.rules.stored_path import stored_path


@dataclass(frozen=True, slots=True)
class Registered:
    """One file to register: size in bytes, adler32 as 8 hex digits, storage endpoint."""

    dataset_name: str
    lfn: str
    size: int
    checksum: str
    storage: str
    n_events: int | None = None


def register_dataset(name: str) -> None:
    """Make sure that the catalogue knows the dataset; an existing one is opened again for the new files."""
    CatalogueDataset.objects.update_or_create(name=name, defaults={"state": "open"})


def close_dataset(name: str) -> None:
    """Say that no more files come."""
    CatalogueDataset.objects.filter(name=name).update(state="closed")


_REGISTER = Prepared(
    "register_files",
    "text[], text[], bigint[], text[], text[], int[], text[]",
    """
    WITH given AS (
        SELECT d.id AS dataset_id, g.*
        FROM unnest($1, $2, $3, $4, $5, $6, $7) AS g(name, lfn, size, checksum, storage, events, path)
        JOIN workqueues_cataloguedataset d ON d.name = g.name
    ), filed AS (
        INSERT INTO workqueues_cataloguefile (dataset_id, lfn, fsize, checksum, n_events)
        SELECT dataset_id, lfn, size, checksum, events FROM given
        ON CONFLICT (dataset_id, lfn) DO NOTHING RETURNING id, dataset_id, lfn
    )
    INSERT INTO workqueues_replica (file_id, storage, path)
    SELECT filed.id, given.storage, given.path FROM filed JOIN given USING (dataset_id, lfn)
    """,
)


def registering(files: Sequence[Registered]) -> list[Call]:
    """What registers files with one replica each, in the caller's transaction; a file that is registered stays as it is."""
    if not files:
        return []
    values = (
        [f.dataset_name for f in files],
        [f.lfn for f in files],
        [f.size for f in files],
        [f.checksum for f in files],
        [f.storage for f in files],
        [f.n_events for f in files],
        [stored_path(f.dataset_name, f.lfn) for f in files],
    )
    return [_REGISTER.with_values(*values)]
