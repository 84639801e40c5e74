"""The local catalogue: our own tables, and for a check the storage endpoints themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Count, Q, QuerySet, Sum

from workqueues.catalogue.port import Copies, StorageRoot, faults_of, storage_roots
from workqueues.ledger.outputs import close_in_catalogue, register_datasets
from workqueues.models import CatalogueDataset, CatalogueFile
from workqueues.queries.read_grants import catalogued, readable
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.jobs.held_files import CopyLook, FoundCopy
from workqueues.rules.refine import DatasetFacts, DatasetKey, Reader, Writer
from workqueues.rules.refine.data_rights import of_another_vo

READ_AT_ONCE = 5000
"""Rows that are asked for at once where there may be a million."""


class LocalCatalogue:
    """Implements `Catalogue` on the tables of this installation.

    Files on their way to where their dataset is collected are not there yet, copies that are about to be deleted not any more.
    """

    def look_up(self, reader: Reader, names: Sequence[str]) -> Mapping[str, DatasetFacts]:
        known = {d.name: _facts(d.name, d) for d in _counted(Q(vo=reader.vo, name__in=names))}
        others = {(reader, key): name for name, key in _of_other_vos(reader, names).items() if name not in known}
        readable_names = {number: others[wish] for wish, number in readable(others).items()}
        for d in _counted(Q(id__in=readable_names)) if readable_names else ():
            known[readable_names[d.id]] = _facts(readable_names[d.id], d, data_vo=d.vo)
        return known

    def withheld(self, reader: Reader, names: Sequence[str]) -> Collection[str]:
        others = _of_other_vos(reader, names)
        allowed = readable({(reader, key) for key in others.values()})
        existing = catalogued([key for key in others.values() if (reader, key) not in allowed])
        return [name for name, key in others.items() if key in existing]

    def owners(self, vo: str, names: Sequence[str]) -> Mapping[str, str]:
        return dict(CatalogueDataset.objects.filter(vo=vo, name__in=names).values_list("name", "owner"))

    def files(self, dataset: DatasetKey) -> Sequence[NewFile]:
        rows = CatalogueFile.objects.filter(dataset__vo=dataset.vo, dataset__name=dataset.name, moving=False).order_by("lfn")
        columns = ("lfn", "fsize", "checksum", "guid", "n_events", "boundary_id", "lumi_block_nr")
        return [NewFile(*row) for row in rows.values_list(*columns).iterator(READ_AT_ONCE)]

    def replicas(self, datasets: Collection[DatasetKey]) -> Mapping[DatasetKey, Sequence[Copies]]:
        """Where the datasets are, storages by name: one query for all of them."""
        copies: dict[DatasetKey, list[Copies]] = {}
        wanted = sorted(set(datasets))
        with connection.cursor() as cursor:
            cursor.execute(
                """
                SELECT d.vo, d.name, r.storage, count(r.id), coalesce(sum(f.fsize) FILTER (WHERE r.id IS NOT NULL), 0)
                FROM unnest(%s::text[], %s::text[]) AS g(vo, name)
                    JOIN workqueues_cataloguedataset d ON d.name = g.name AND d.vo = g.vo
                    LEFT JOIN workqueues_cataloguefile f ON f.dataset_id = d.id AND NOT f.moving
                    LEFT JOIN workqueues_replica r ON r.file_id = f.id AND r.state = 'available'
                GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
                """,
                [[key.vo for key in wanted], [key.name for key in wanted]],
            )
            for vo, name, storage, files, size in cursor:
                dataset_copies = copies.setdefault(DatasetKey(vo, name), [])
                if storage is not None:
                    dataset_copies.append(Copies(storage, files, int(size)))
        return copies

    def replicas_of_files(self, dataset: DatasetKey, lfns: Sequence[str]) -> Sequence[Copies]:
        with connection.cursor() as cursor:
            cursor.execute(
                """
                SELECT r.storage, count(*), sum(f.fsize)
                FROM workqueues_cataloguefile f JOIN workqueues_replica r ON r.file_id = f.id AND r.state = 'available'
                WHERE NOT f.moving AND f.dataset_id = (SELECT id FROM workqueues_cataloguedataset WHERE vo = %s AND name = %s)
                    AND f.lfn = ANY (%s)
                GROUP BY 1 ORDER BY 1
                """,
                [*dataset, list(lfns)],
            )
            return [Copies(storage, files, int(size)) for storage, files, size in cursor]

    def places_of_files(self, dataset: DatasetKey, lfns: Sequence[str]) -> Mapping[str, Sequence[tuple[str, str]]]:
        rows = CatalogueFile.objects.filter(
            dataset__vo=dataset.vo, dataset__name=dataset.name, lfn__in=lfns, moving=False, replicas__state="available"
        )
        places: dict[str, list[tuple[str, str]]] = {}
        for lfn, storage, path in rows.order_by("lfn", "replicas__storage").values_list(
            "lfn", "replicas__storage", "replicas__path"
        ):
            places.setdefault(lfn, []).append((storage, path))
        return places

    def register(self, names: Sequence[str], writer: Writer) -> None:
        register_datasets(names, writer)

    def close(self, names: Sequence[str], writer: Writer) -> None:
        close_in_catalogue(names, writer)

    def check(self, dataset: DatasetKey, lfns: Sequence[str]) -> Mapping[str, Sequence[CopyLook]]:
        """Look at every copy. That one is absent or damaged counts only while its storage is up before and after the look."""
        roots = storage_roots()
        rows = CatalogueFile.objects.filter(
            dataset__vo=dataset.vo, dataset__name=dataset.name, lfn__in=lfns, moving=False, replicas__state="available"
        )
        columns = ("lfn", "fsize", "checksum", "replicas__storage", "replicas__path")
        copies = list(rows.order_by("lfn", "replicas__storage").values_list(*columns))
        used = {storage: roots[storage] for *_, storage, _ in copies if storage in roots}
        before = faults_of(used)
        found = [(row, *_look(used.get(row[3]), before.get(row[3], ""), row[4] or row[0], row[1], row[2])) for row in copies]
        after = faults_of({name: root for name, root in used.items() if not before[name]})
        faults = {**before, **after}
        looks: dict[str, list[CopyLook]] = {lfn: [] for lfn in lfns}
        for (lfn, _, _, storage, _), state, problem in found:
            root, fault = used.get(storage), problem or faults.get(storage, "")
            if root is None or not root.mark:
                doubt = f"storage {storage} was never marked, so that nothing is concluded from it"
                looks[lfn].append(CopyLook(storage, state, "unmarked", doubt))
            else:
                looks[lfn].append(CopyLook(storage, state, "down" if fault and state != "intact" else "up", fault))
        return looks


def _look(root: StorageRoot | None, fault: str, path: str, size: int, checksum: str) -> tuple[FoundCopy, str]:
    """What is found of a copy, and the trouble of a storage that cannot be read; where it is down none is looked for."""
    if root is None or fault:
        return "absent", fault
    try:
        found = root.measure(path, size)
    except OSError as problem:
        return "absent", f"{path} cannot be read: {problem.strerror}"
    if found is None:
        return "absent", ""
    return ("intact" if found == (size, checksum.removeprefix("ad:")) else "damaged"), ""


def _of_other_vos(reader: Reader, names: Sequence[str]) -> dict[str, DatasetKey]:
    """Those of the names that have a scope -> the datasets of other VOs that they may mean."""
    return {name: key for name in names if (key := of_another_vo(reader.vo, name))}


def _counted(condition: Q) -> QuerySet[CatalogueDataset]:
    there = Q(files__moving=False)
    counts = {
        "n": Count("files", filter=there),
        "events": Sum("files__n_events", filter=there),
        "counted": Count("files__n_events", filter=there),
    }
    return CatalogueDataset.objects.filter(condition).annotate(**counts)


def _facts(name: str, dataset: Any, data_vo: str = "") -> DatasetFacts:
    """What is known of a counted dataset, which the task calls `name`."""
    uncounted = dataset.n - dataset.counted
    return DatasetFacts(name, dataset.state, dataset.n, dataset.events, uncounted, data_vo)
