"""The inputs of a pulled element come into our catalogue as the parent has them: same VO, dataset and name (row X5).

What is here already stays as it is. Copies on storages that this grid does not know are left out, and those of files that differ.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import connection

from workqueues.rules.elements.messages import WorkDataset
from workqueues.rules.jobs.file_names import dataset_folder

_DATASETS = """
INSERT INTO workqueues_cataloguedataset (vo, name, folder, state)
SELECT v.vo, v.name, v.folder, 'closed'
FROM unnest(%(vos)s::text[], %(names)s::text[], %(folders)s::text[]) AS v(vo, name, folder)
ORDER BY v.name, v.vo ON CONFLICT (name, vo) DO NOTHING
"""
_FILES = """
INSERT INTO workqueues_cataloguefile (dataset_id, lfn, fsize, checksum, guid, n_events, boundary_id, lumi_block_nr)
SELECT d.id, v.lfn, v.size, v.checksum, v.guid, v.events, v.boundary, v.lumi
FROM workqueues_cataloguedataset d, unnest(%(lfns)s::text[], %(sizes)s::bigint[], %(checksums)s::text[], %(guids)s::text[],
    %(events)s::int[], %(boundaries)s::bigint[], %(lumis)s::int[]) AS v(lfn, size, checksum, guid, events, boundary, lumi)
WHERE d.vo = %(vo)s AND d.name = %(name)s ORDER BY v.lfn ON CONFLICT (dataset_id, lfn) DO NOTHING
"""
_REPLICAS = """
INSERT INTO workqueues_replica (file_id, storage, path)
SELECT f.id, v.storage, v.path
FROM workqueues_cataloguedataset d JOIN workqueues_cataloguefile f ON f.dataset_id = d.id
    JOIN unnest(%(lfns)s::text[], %(sizes)s::bigint[], %(checksums)s::text[], %(storages)s::text[], %(paths)s::text[])
        AS v(lfn, size, checksum, storage, path) ON v.lfn = f.lfn AND v.size = f.fsize AND v.checksum = f.checksum
WHERE d.vo = %(vo)s AND d.name = %(name)s ORDER BY f.id, v.storage ON CONFLICT (file_id, storage) DO NOTHING
"""


def bring_in(datasets: Sequence[WorkDataset], storages: Collection[str]) -> None:
    """The datasets, files and copies, in the caller's transaction; `storages`: those that this grid knows.

    A dataset of records is none of the catalogue.
    """
    real = [dataset for dataset in datasets if any(file.size is not None for file in dataset.files)]
    if not real:
        return
    folders = [dataset_folder(d.vo, d.name) for d in real]
    with connection.cursor() as cursor:
        cursor.execute(_DATASETS, {"vos": [d.vo for d in real], "names": [d.name for d in real], "folders": folders})
        for dataset in sorted(real, key=lambda d: (d.vo, d.name)):
            where = {"vo": dataset.vo, "name": dataset.name}
            cursor.execute(_FILES, {**where, **_files(dataset)})
            cursor.execute(_REPLICAS, {**where, **_copies(dataset, storages)})


def _files(dataset: WorkDataset) -> dict[str, list[object]]:
    files = [file for file in dataset.files if file.size is not None]
    return {
        "lfns": [f.lfn for f in files],
        "sizes": [f.size for f in files],
        "checksums": [f.checksum for f in files],
        "guids": [f.guid for f in files],
        "events": [f.n_events for f in files],
        "boundaries": [f.boundary_id for f in files],
        "lumis": [f.lumi_block_nr for f in files],
    }


def _copies(dataset: WorkDataset, storages: Collection[str]) -> dict[str, list[object]]:
    known = frozenset(storages)
    copies = [
        (file.lfn, file.size, file.checksum, copy.storage, copy.path)
        for file in dataset.files
        if file.size is not None
        for copy in file.copies
        if copy.storage in known
    ]
    names = ("lfns", "sizes", "checksums", "storages", "paths")
    return {name: [copy[i] for copy in copies] for i, name in enumerate(names)}
