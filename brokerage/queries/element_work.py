"""What a child broker needs to make a task of an element: parameters, files with their copies, and numbers (decisions J2, J4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workqueues.catalogue import catalogue
from workqueues.models import Dataset, Element, ElementGroup, File, Task
from workqueues.rules.elements.child_parameters import ElementFacts, child_parameters
from workqueues.rules.elements.messages import Copy, ElementWork, WorkDataset, WorkFile
from workqueues.rules.refine import dataset_key
from workqueues.states import INPUT_FILE

LONGEST_NAME = 200
"""So many characters of the name of a task are in that of the child's."""
MEASURED = {"ram_count": "ramCount", "walltime": "walltime", "cpu_time": "cpuTime", "out_disk_count": "outDiskCount"}
"""Columns that jobs of the task were measured by -> the parameters that say the same."""


def element_work(element: Element, serial_first: int, serials: int) -> ElementWork:
    """The work of an element that a child has. `serial_first`, `serials`: its lot of serial numbers."""
    task, dataset = element.task, element.dataset
    rows = list(
        File.objects.filter(element_id=element.id, dataset_id=dataset.id, status__in=INPUT_FILE.in_use)
        .order_by("id")
        .values("lfn", "n_events", "first_event", "attempt_nr", "max_attempt")
    )
    is_records = dataset.type == "pseudo_input"
    facts = ElementFacts(
        name=f"{task.task_name[:LONGEST_NAME]}.e{element.id}.{element.try_nr}",
        priority=task.current_priority,
        dataset=dataset.dataset_name,
        files=[row["lfn"] for row in rows],
        n_events=sum(row["n_events"] or 0 for row in rows) or None,
        first_event=(rows[0]["first_event"] or 1) if rows else 1,
        is_records=is_records,
        serial_first=serial_first,
        tries=min((max((row["max_attempt"] or 3) - row["attempt_nr"], 1) for row in rows), default=1),
        measured=_measured(task),
    )
    return ElementWork(
        id=element.id,
        try_nr=element.try_nr,
        owner=task.user_name,
        parameters=child_parameters(task.params.task_params, facts),
        inputs=[] if is_records else [_dataset(task, dataset, facts.files), *_further(task)],
        sites=list(
            ElementGroup.objects.filter(id=element.group_id or 0).values_list("sites", flat=True).first() or [element.site]
        ),
        serials=serials,
    )


def _sites(element: Element) -> Sequence[str] | None:
    """Where it may run, as long as its group is there."""
    return ElementGroup.objects.filter(id=element.group_id or 0).values_list("sites", flat=True).first()


def _measured(task: Task) -> dict[str, Any]:
    """What was measured of the task, in the units in which it is kept."""
    if not task.n_measured:
        return {}
    measured = {name: getattr(task, column) for column, name in MEASURED.items() if getattr(task, column)}
    units = {"ramUnit": task.ram_unit, "walltimeUnit": task.walltime_unit, "cpuTimeUnit": task.cpu_time_unit}
    return measured | {name: unit for name, unit in units.items() if unit}


def _further(task: Task) -> Iterable[WorkDataset]:
    """The other inputs of the task, each with all of its files: elements share them."""
    rows = Dataset.objects.filter(task_id=task.id, type="input", excluded=False, master__isnull=False).order_by("id")
    for dataset in rows:
        lfns = list(File.objects.filter(dataset_id=dataset.id).order_by("id").values_list("lfn", flat=True))
        yield _dataset(task, dataset, lfns, whole=True)


def _dataset(task: Task, dataset: Dataset, lfns: Sequence[str], *, whole: bool = False) -> WorkDataset:
    key = dataset_key(task.vo, dataset.dataset_name, dataset.data_vo)
    places = catalogue().places_of_files(key, lfns)
    rows = File.objects.filter(dataset_id=dataset.id, lfn__in=lfns).order_by("id")
    columns = ("lfn", "fsize", "checksum", "guid", "n_events", "boundary_id", "lumi_block_nr")
    files = [
        WorkFile(
            lfn=lfn, size=size, checksum=checksum, guid=guid, n_events=n_events, boundary_id=boundary, lumi_block_nr=lumi,
            copies=[Copy(storage=storage, path=path) for storage, path in places.get(lfn, ())],
        )
        for lfn, size, checksum, guid, n_events, boundary, lumi in rows.values_list(*columns)
    ]  # fmt: skip
    return WorkDataset(name=key.name, vo=key.vo, whole=whole, files=files)
