"""The local catalogue: our own tables, and for a check the directories of the storage endpoints themselves."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.db import connection
from django.db.models import Count, Sum

from workqueues.catalogue.port import Condition, Copies, storage_paths
from workqueues.ledger.outputs import close_dataset, register_dataset
from workqueues.models import CatalogueDataset, CatalogueFile
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.refine import DatasetFacts

CHUNK = 1 << 20
READ_AT_ONCE = 5000
"""Rows that are asked for at once where there may be a million."""


class LocalCatalogue:
    """Implements `Catalogue` on the tables of this installation."""

    def look_up(self, names: Sequence[str]) -> Mapping[str, DatasetFacts]:
        rows = CatalogueDataset.objects.filter(name__in=names).annotate(
            n=Count("files"), events=Sum("files__n_events"), counted=Count("files__n_events")
        )
        return {d.name: DatasetFacts(d.name, d.state, d.n, d.events, d.n - d.counted) for d in rows}

    def files(self, name: str) -> Sequence[NewFile]:
        rows = CatalogueFile.objects.filter(dataset__name=name).order_by("lfn")
        columns = ("lfn", "fsize", "checksum", "guid", "n_events", "boundary_id", "lumi_block_nr")
        return [NewFile(*row) for row in rows.values_list(*columns).iterator(READ_AT_ONCE)]

    def replicas(self, names: Sequence[str]) -> Mapping[str, Sequence[Copies]]:
        """Where the datasets are, storages by name: one query for all of them."""
        copies: dict[str, list[Copies]] = {}
        with connection.cursor() as cursor:
            cursor.execute(
                """
                SELECT d.name, r.storage, count(r.id), coalesce(sum(f.fsize) FILTER (WHERE r.id IS NOT NULL), 0)::bigint
                FROM workqueues_cataloguedataset d LEFT JOIN workqueues_cataloguefile f ON f.dataset_id = d.id
                    LEFT JOIN workqueues_replica r ON r.file_id = f.id
                WHERE d.name = ANY (%s) GROUP BY 1, 2 ORDER BY 1, 2
                """,
                [sorted(set(names))],
            )
            for name, storage, files, size in cursor:
                copies.setdefault(name, []).extend([] if storage is None else [Copies(storage, files, size)])
        return copies

    def replicas_of_files(self, name: str, lfns: Sequence[str]) -> Sequence[Copies]:
        with connection.cursor() as cursor:
            cursor.execute(
                """
                SELECT r.storage, count(*), sum(f.fsize)::bigint
                FROM workqueues_cataloguefile f JOIN workqueues_replica r ON r.file_id = f.id
                WHERE f.dataset_id = (SELECT id FROM workqueues_cataloguedataset WHERE name = %s) AND f.lfn = ANY (%s)
                GROUP BY 1 ORDER BY 1
                """,
                [name, list(lfns)],
            )
            return [Copies(*row) for row in cursor]

    def register(self, names: Sequence[str]) -> None:
        for name in names:
            register_dataset(name)

    def close(self, names: Sequence[str]) -> None:
        for name in names:
            close_dataset(name)

    def check(self, dataset: str, lfns: Sequence[str]) -> Mapping[str, Condition]:
        """Look at every copy: lost when none is left, broken when none has the size and adler32 that are registered."""
        paths = storage_paths()
        copies: dict[str, list[Path]] = defaultdict(list)
        facts: dict[str, tuple[int, str]] = {}
        rows = CatalogueFile.objects.filter(dataset__name=dataset, lfn__in=lfns)
        for lfn, size, checksum, storage, path in rows.values_list(
            "lfn", "fsize", "checksum", "replicas__storage", "replicas__path"
        ):
            facts[lfn] = (size, checksum)
            if storage in paths:
                copies[lfn].append(Path(paths[storage]) / (path or lfn))
        return {lfn: _condition([p for p in copies[lfn] if p.is_file()], facts.get(lfn)) for lfn in lfns}


def _condition(copies: Sequence[Path], facts: tuple[int, str] | None) -> Condition:
    if not copies or facts is None:
        return "lost"
    size, checksum = facts
    intact = any(path.stat().st_size == size and _adler32(path) == checksum.removeprefix("ad:") for path in copies)
    return "ok" if intact else "broken"


def _adler32(path: Path) -> str:
    total = 1
    with path.open("rb") as stream:
        while block := stream.read(CHUNK):
            total = zlib.adler32(block, total)
    return f"{total:08x}"
