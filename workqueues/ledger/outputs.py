"""Outputs in the local catalogue: their datasets when a task starts, concrete ones of templates when the first jobs write to
them, their files and replicas when a job finishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import SYSTEM, Principal
from broker_site.foundation.sql.copying import take_ids
from broker_site.foundation.sql.prepared import Call, Prepared
from workqueues.ledger.moves import datasets_born, move_dataset
from workqueues.ledger.output_names import claim_outputs
from workqueues.models import CatalogueDataset, CatalogueFile, Dataset, PlannedOutput, Replica, Task
from workqueues.rules.jobs.file_names import dataset_folder
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import OutputName
from workqueues.rules.refine.data_rights import Writer, of_another
from workqueues.states import TASK

TEMPLATE = "tmpl_"
"""How the types of template datasets begin: no file is ever in one."""
_INHERITED = (
    "task_id", "container_name", "stream_name", "attributes", "provenance_id", "vo", "cloud", "storage_token", "destination",
    "collected_at", "also_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One file to register: size in bytes, adler32 as 8 hex digits, storage endpoint.

    `moving`: it is on its way to where its dataset is collected, and no reader sees it yet. `path`: on the storage; empty: below
    the folder of its dataset.
    """

    dataset_name: str
    lfn: str
    size: int
    checksum: str
    storage: str
    n_events: int | None = None
    moving: bool = False
    path: str = ""


class DatasetOfAnother(Exception):
    """A task may not write to a dataset; the message is a sentence for its owner."""


_OPEN = """
INSERT INTO workqueues_cataloguedataset AS c (vo, name, owner, folder, state)
SELECT %(vo)s, g.name, %(owner)s, g.folder, 'open' FROM unnest(%(names)s::text[], %(folders)s::text[]) AS g(name, folder)
ON CONFLICT (name, vo) DO UPDATE SET state = 'open', expires_at = NULL,
    folder = CASE c.folder WHEN '' THEN EXCLUDED.folder ELSE c.folder END
    WHERE c.owner = EXCLUDED.owner OR %(produces)s
RETURNING name
"""


def register_datasets(names: Iterable[str], writer: Writer) -> None:
    """Make sure that the catalogue knows the datasets; existing ones are opened again for the new files.

    Raises DatasetOfAnother, and then does nothing.
    """
    wanted = sorted(set(names))
    values: Any = {
        "vo": writer.vo,
        "owner": writer.user_name,
        "names": wanted,
        "folders": [dataset_folder(writer.vo, name) for name in wanted],
        "produces": writer.produces,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_OPEN, values)
        opened = {name for (name,) in cursor}
        if refused := [name for name in wanted if name not in opened]:
            raise DatasetOfAnother(of_another(refused[0], writer))


def close_in_catalogue(names: Iterable[str], writer: Writer) -> None:
    """No more files come to these datasets, as far as they are the writer's."""
    known = CatalogueDataset.objects.filter(vo=writer.vo, name__in=set(names))
    (known if writer.produces else known.filter(owner=writer.user_name)).update(state="closed")


class CannotGive(Exception):
    """Datasets stay with their VO, all of them; the message is a sentence for the operator."""


def give_datasets(names: Q, vo: str, owner: str, *, of: str = "", by: Principal = SYSTEM) -> list[str]:
    """Make datasets of the VO `of` (empty: that nobody has) those of another VO: their names there. Raises CannotGive.

    Files stay where they are, which their replicas know; new ones go to the folders of the new VO. A name that has this VO as its
    scope loses it, as the VO's own datasets have none.
    """
    with transaction.atomic():
        locked = CatalogueDataset.objects.select_for_update(no_key=True).filter(names, vo=of)
        datasets = {dataset.name: dataset for dataset in locked.order_by("name")}
        new_names = [name.removeprefix(f"{vo}:") for name in datasets]
        if twin := next((name for name in new_names if new_names.count(name) > 1), ""):
            raise CannotGive(f"two of these datasets would be {twin} of VO {vo}; nothing was given")
        if known := CatalogueDataset.objects.filter(vo=vo, name__in=new_names).order_by("name").first():
            raise CannotGive(f"VO {vo} has a dataset {known.name} already; nothing was given")
        if of and (use := _live_use(of, list(datasets))):
            raise CannotGive(f"task {use[0]} of VO {use[1]}, which has not ended, uses {use[2]}; nothing was given")
        for dataset, name in zip(datasets.values(), new_names, strict=True):
            before = {"vo": of, "name": dataset.name}
            dataset.vo, dataset.name, dataset.owner, dataset.folder = vo, name, owner, dataset_folder(vo, name)
            dataset.save(update_fields=["vo", "name", "owner", "folder"])
            audit("dataset.give", by, f"dataset {name}", vo=vo, before=before, after={"vo": vo, "owner": owner})
        return new_names


def _live_use(vo: str, names: Sequence[str]) -> tuple[int, str, str] | None:
    """A task that has not ended and reads or writes one of these datasets of the VO, the VO of the task, and which."""
    ours, theirs = Q(vo=vo, dataset_name__in=names), Q(data_vo=vo, dataset_name__in=[f"{vo}:{name}" for name in names])
    reads = Dataset.objects.filter(ours | theirs).exclude(task__status__in=TASK.final)
    writes = PlannedOutput.objects.filter(writer__dataset_name__in=names, writer__vo=vo).exclude(task__status__in=TASK.final)
    use = reads.values_list("task_id", "vo", "dataset_name").order_by("task_id", "dataset_name").first()
    columns = ("task_id", "writer__vo", "writer__dataset_name")
    return use or writes.values_list(*columns).order_by("task_id", "writer__dataset_name").first()


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
    register_datasets([d.dataset_name for d in datasets.values()], Writer(task.vo, task.user_name))
    for dataset in datasets.values():
        move_dataset(dataset, "ready", who, "registered in the catalogue")
    return datasets


_REGISTER = Prepared(
    "register_files",
    "text, text[], text[], bigint[], text[], text[], int[], bool[], text[]",
    """
    WITH entry AS (
        SELECT d.id AS dataset_id, CASE g.own_path WHEN '' THEN d.folder || '/' || g.lfn ELSE g.own_path END AS path, g.*
        FROM unnest($2, $3, $4, $5, $6, $7, $8, $9) AS g(name, lfn, size, checksum, storage, events, moving, own_path)
        JOIN workqueues_cataloguedataset d ON d.name = g.name AND d.vo = $1
    ), filed AS (
        INSERT INTO workqueues_cataloguefile (dataset_id, lfn, fsize, checksum, n_events, moving)
        SELECT dataset_id, lfn, size, checksum, events, moving FROM entry RETURNING id, dataset_id, lfn
    )
    INSERT INTO workqueues_replica (file_id, storage, path)
    SELECT filed.id, entry.storage, entry.path FROM filed JOIN entry USING (dataset_id, lfn)
    """,
)


def registering(vo: str, files: Sequence[CatalogueEntry]) -> list[Call]:
    """What registers files of datasets of a VO with one replica each, in the caller's transaction; a name that is registered
    already is refused (IntegrityError).
    """
    if not files:
        return []
    values = (
        vo,
        [f.dataset_name for f in files],
        [f.lfn for f in files],
        [f.size for f in files],
        [f.checksum for f in files],
        [f.storage for f in files],
        [f.n_events for f in files],
        [f.moving for f in files],
        [f.path for f in files],
    )
    return [_REGISTER.with_values(*values)]


def registered_before(vo: str, files: Sequence[CatalogueEntry]) -> dict[tuple[str, str], CatalogueFile]:
    """Those of these files whose names are registered, by dataset and name."""
    rows = CatalogueFile.objects.filter(
        dataset__vo=vo, dataset__name__in={f.dataset_name for f in files}, lfn__in={f.lfn for f in files}
    ).select_related("dataset")
    return {(row.dataset.name, row.lfn): row for row in rows}


def add_replica(file: CatalogueFile, entry: CatalogueEntry) -> None:
    """A registered file was made again, the same to the byte, perhaps at another storage."""
    path = entry.path or f"{file.dataset.folder}/{entry.lfn}"
    Replica.objects.get_or_create(file=file, storage=entry.storage, defaults={"path": path})
