"""Small grids and tasks for tests that need a database: plain rows, made the way an operator and a user would have them."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from brokerage.ledger.pilots import register
from brokerage.models import ComputingQueue, Pilot, QueueStorage, RetryRule, Site, StorageEndpoint
from workqueues.ledger.submit import first_columns, submit
from workqueues.models import CatalogueDataset, CatalogueFile, Replica, Task, WorkQueue
from workqueues.queries.tasks import newest_named


def what_every_broker_begins_with() -> None:
    """The rows that `migrate` makes: a test with transactions of its own leaves empty tables to those behind it."""
    RetryRule.objects.get_or_create(
        name="out of memory", defaults={"component": "pilot", "error_code": "PAYLOAD_MEMORY", "action": "increase_memory"}
    )
    WorkQueue.objects.get_or_create(queue_name="default", queue_type="", vo="*", defaults={"queue_order": 1000})


def grid(*names: str, path: str = "") -> list[ComputingQueue]:
    """One site with one storage and one online queue for each name, and what every broker begins with."""
    what_every_broker_begins_with()
    made = []
    for name in names or ("ALPHA",):
        site = Site.objects.create(name=f"SITE_{name}")
        storage = StorageEndpoint.objects.create(name=f"{name}_DISK", site=site, free_gb=5000, path=path and f"{path}/{name}")
        queue = ComputingQueue.objects.create(
            name=name,
            site=site,
            type="unified",
            maxrss=8000,
            maxtime=86400,
            maxwdir=20000,
            corecount=1,
            corepower=10,
            attributes={"releases": ["ANY"]},
        )
        for access in ("read_lan", "write_lan"):
            QueueStorage.objects.create(queue=queue, storage=storage, access=access, position=1)
        pilot(queue)
        made.append(queue)
    return made


def pilot(queue: ComputingQueue, slot: str = "slot1") -> UUID:
    """A registered pilot of the queue."""
    row = Pilot(id=uuid4(), queue=queue, host="node1", slot=slot, core_count=1, memory_mb=4000, disk_mb=10000)
    register(row)
    return row.id


def catalogue_dataset(
    name: str, n: int, storage: str = "ALPHA_DISK", size: int = 1000, vo: str = "demo", owner: str = ""
) -> CatalogueDataset:
    """A closed dataset of `n` files with one replica each."""
    dataset = CatalogueDataset.objects.create(vo=vo, name=name, owner=owner, state="closed")
    files = CatalogueFile.objects.bulk_create(
        CatalogueFile(dataset=dataset, lfn=f"{name}.{i:06d}", fsize=size, checksum="00000001", n_events=10) for i in range(n)
    )
    Replica.objects.bulk_create(Replica(file=f, storage=storage) for f in files)
    return dataset


def more_files(dataset: str, *lfns: str, events: int = 10) -> None:
    """New files of a dataset of the catalogue."""
    row = CatalogueDataset.objects.get(name=dataset)
    for lfn in lfns:
        file = CatalogueFile.objects.create(dataset=row, lfn=lfn, fsize=1000, checksum="00000001", n_events=events)
        Replica.objects.create(file=file, storage="ALPHA_DISK")


def parameters(name: str = "t1", **more: Any) -> dict[str, Any]:
    """Valid parameters of a task without input; more parameters replace or, when None, remove these."""
    params: dict[str, Any] = {
        "taskName": name,
        "userName": "ada",
        "vo": "demo",
        "prodSourceLabel": "user",
        "taskType": "anal",
        "processingType": "evgen",
        "taskPriority": 500,
        "architecture": "",
        "transUses": "",
        "transHome": "",
        "transPath": "make_events.py",
        "ramCount": 500,
        "ramUnit": "MB",
        "skipScout": True,
        "noInput": True,
        "nEvents": 40,
        "nEventsPerJob": 10,
        "log": {"type": "template", "param_type": "log", "dataset": f"{name}.log", "value": f"{name}.log.${{SN}}.tgz"},
        "jobParameters": [
            {"type": "template", "param_type": "number", "value": "--seed ${RNDMSEED}"},
            {"type": "template", "param_type": "pseudo_input", "dataset": "seq_number", "value": "--run ${SEQNUMBER}"},
            {"type": "template", "param_type": "output", "dataset": f"{name}.EVT", "value": f"--out={name}.EVT.${{SN}}.txt"},
        ],
    }
    params.update(more)
    return {k: v for k, v in params.items() if v is not None}


def reading(name: str, dataset: str, **more: Any) -> dict[str, Any]:
    """Valid parameters of a task that reads a dataset, two files a job."""
    items = [
        {"type": "template", "param_type": "input", "dataset": dataset, "value": "--in ${IN/L}"},
        {"type": "template", "param_type": "output", "dataset": f"{name}.OUT", "value": f"--out={name}.OUT.${{SN}}.txt"},
    ]
    base: dict[str, Any] = {"noInput": None, "nEvents": None, "nEventsPerJob": None, "nFilesPerJob": 2, "jobParameters": items}
    return parameters(name, **{**base, **more})


def submitted(params: dict[str, Any]) -> Task:
    """The task of these parameters, as submitted."""
    name = params.get("parentTaskName")
    parent = newest_named(params["vo"], params["userName"], name) if name else None
    columns = first_columns(params, params["userName"], parent.id if parent else None)
    task, _ = submit(params, columns, params["userName"], "user:ada")
    return task
