"""Outputs in the local catalogue: their datasets when a task starts, concrete ones of templates when the first jobs write to
them, their files and replicas when a job finishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from broker_site.foundation.sql.copying import take_ids
from broker_site.foundation.sql.prepared import Call, Prepared
from workqueues.ledger.moves import datasets_born, move_dataset
from workqueues.ledger.output_names import claim_outputs
from workqueues.models import CatalogueDataset, CatalogueFile, Dataset, Replica, Task
from workqueues.rules.jobs.file_names import stored_path
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import OutputName

TEMPLATE = "tmpl_"
"""How the types of template datasets begin: no file is ever in one."""
_INHERITED = (
    "task_id", "container_name", "stream_name", "attributes", "provenance_id", "vo", "cloud", "storage_token", "destination",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
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
    CatalogueDataset.objects.filter(name=name).update(state="closed")


def concrete_datasets(task: Task, dataset_ids: Sequence[int], site: str, who: str) -> Mapping[int, Dataset]:
    """The datasets that jobs at `site` (a computing queue) write to, by those that the task's output templates name.

    A dataset that is no template stands for itself. Of a template a concrete one is made and registered in the catalogue, the
    first time: one for the task, or one for each site where its split rule has IA. Two callers at once get the same: the second
    waits for the lock of the template. Works in the caller's transaction or in its own.
    """
    wanted = Dataset.objects.in_bulk(set(dataset_ids))
    templates = sorted(d.id for d in wanted.values() if d.type.startswith(TEMPLATE))
    if not templates:
        return wanted
    place = site if parse(task.split_rule).instantiate_per_queue else ""
    known = _concrete(templates, place)
    if missing := [i for i in templates if i not in known]:
        with transaction.atomic():
            locked = list(Dataset.objects.select_for_update(no_key=True).filter(id__in=missing).order_by("id"))
            known |= _concrete(missing, place)
            known |= _make_concrete(task, [d for d in locked if d.id not in known], place, who)
    return {**wanted, **known}


def _concrete(template_ids: Sequence[int], site: str) -> dict[int, Dataset]:
    return {d.template_id or 0: d for d in Dataset.objects.filter(template_id__in=template_ids, site=site)}


def _make_concrete(task: Task, templates: Sequence[Dataset], site: str, who: str) -> dict[int, Dataset]:
    datasets = {}
    for template, new_id in zip(templates, take_ids("workqueues_dataset", len(templates)), strict=True):
        datasets[template.id] = Dataset(
            id=new_id,
            dataset_name=f"{template.dataset_name}.{new_id}",
            type=template.type.removeprefix(TEMPLATE),
            template_id=template.id,
            site=site,
            status="defined",
            **{name: getattr(template, name) for name in _INHERITED},
        )
    Dataset.objects.bulk_create(datasets.values())
    claim_outputs(task, [OutputName(d.dataset_name, "") for d in datasets.values()], shared=False)
    datasets_born(datasets.values(), who, "concrete dataset of a template")
    for dataset in datasets.values():
        register_dataset(dataset.dataset_name)
        move_dataset(dataset, "ready", who, "registered in the catalogue")
    return datasets


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
        SELECT dataset_id, lfn, size, checksum, events FROM given RETURNING id, dataset_id, lfn
    )
    INSERT INTO workqueues_replica (file_id, storage, path)
    SELECT filed.id, given.storage, given.path FROM filed JOIN given USING (dataset_id, lfn)
    """,
)


def registering(files: Sequence[CatalogueEntry]) -> list[Call]:
    """What registers files with one replica each, in the caller's transaction; a name that is registered already is refused
    (IntegrityError).
    """
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


def registered_before(files: Sequence[CatalogueEntry]) -> dict[tuple[str, str], CatalogueFile]:
    """Those of these files whose names are registered, by dataset and name."""
    rows = CatalogueFile.objects.filter(
        dataset__name__in={f.dataset_name for f in files}, lfn__in={f.lfn for f in files}
    ).select_related("dataset")
    return {(row.dataset.name, row.lfn): row for row in rows}


def add_replica(file: CatalogueFile, entry: CatalogueEntry) -> None:
    """A registered file was made again, the same to the byte, perhaps at another storage."""
    path = stored_path(entry.dataset_name, entry.lfn)
    Replica.objects.get_or_create(file=file, storage=entry.storage, defaults={"path": path})
