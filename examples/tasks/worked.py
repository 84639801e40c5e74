"""Takes one task through work queue, share, throttle and splitting, and prints what each step read and wrote.

    python examples/tasks/worked.py

A private system of its own (instance `worked`), with the real agents; pilots are only played. What is printed stands, with the
reasons in words, in docs/explanation/from-task-to-jobs.md. Here: setting up and the order of the steps. Not here: what is
printed (`telling`), and the data (`scene`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

if TYPE_CHECKING:
    from broker_site.foundation.gdpconfig.changesets import Line
    from brokerage.ledger.lease import Lease

ROOT = Path(__file__).resolve().parents[2]
LEASE_S = 3600.0
WHO = "example"


def main() -> int:
    """Everything, on a database that is empty at the beginning."""
    sys.path.insert(0, str(ROOT))
    from examples.private import empty_system

    with empty_system("worked"):
        worked()
    return 0


def worked() -> None:
    """The steps, each followed by what it left."""
    from examples.tasks import scene, telling

    prepare()
    telling.tell_grid()
    name = "demo.pile.1"
    task = submit(scene.pile_up(name))
    run("refine", "feed", "assign")
    telling.tell_refined(task)
    telling.tell_work_queue(task)
    telling.tell_share(task)
    run("share")
    telling.tell_standings()
    run("generate")
    telling.tell_verdict("5. Throttle")
    telling.tell_decision(task)
    telling.tell_cut(task)
    telling.tell_job(task, 1)
    telling.tell_job(task, 2)
    run("generate")
    telling.tell_verdict("10. Throttle, the next run")
    start("demo.pile.0")
    run("generate")
    telling.tell_verdict("11. Throttle, when one more job runs")
    failed = [start(name) for _ in range(10)][1]
    fail(failed)
    telling.tell_failed(failed.job_id)
    run("generate")
    telling.tell_again(task)
    sized = submit(scene.pile_up("demo.pile.2", nEventsPerJob=None, nGBPerJob=18))
    run("refine", "feed", "assign", "generate")
    telling.tell_sized(sized)
    drive_by_work_queues()
    telling.tell_queue_standings()


def places() -> list[Line]:
    """Lines that make the work queues and shares of the scene."""
    from broker_site.foundation.gdpconfig.changesets import named_line
    from examples.tasks import scene

    lines = []
    for row in scene.WORK_QUEUES:
        inside = f"{row['partition']} ({scene.VO}, managed)" if row.get("partition") else ""
        columns = {name: value for name, value in row.items() if name != "queue_name"} | {"partition": inside}
        lines.append(named_line("work_queue", f"{row['queue_name']}/managed", scene.VO, columns))
    for row in scene.SHARES:
        columns = {name: value for name, value in row.items() if name != "name"}
        lines.append(named_line("share", row["name"], scene.VO, columns))
    return lines


def prepare() -> None:
    """Grid, work queues, shares, limits, datasets, and the tasks of others with jobs that wait and run."""
    from django.core.management import call_command

    from broker_site.foundation import gdpconfig
    from broker_site.foundation.gdpconfig.changesets import Draft
    from brokerage.ledger.pilots import note_vain_ask
    from brokerage.models import ComputingQueue
    from brokerage.rules.dispatch.requirement import Resource
    from examples.tasks import scene
    from workqueues.models import WorkQueue

    with tempfile.NamedTemporaryFile("w", suffix=".json") as document:
        json.dump(scene.grid(), document)
        document.flush()
        call_command("import_grid", document.name, verbosity=0)
    for queue in ComputingQueue.objects.order_by("name"):
        for _ in range(scene.SLOTS):
            note_vain_ask(pilot(queue.name), queue.id, Resource(queue.name), 1.0)
    gdpconfig.set_override("jobbroker", "NQUEUELIMITSITE", scene.SLOTS, who=WHO, why="worked task")
    WorkQueue.objects.get_or_create(queue_name="default", queue_type="", vo="*", defaults={"queue_order": 1000})
    gdpconfig.apply(Draft(places(), WHO, "worked task", "command"))
    catalogue("demo.signal", scene.signal_files())
    catalogue("demo.minbias", [(2000, 3 * scene.GB // 2)] * scene.MINIMUM_BIAS)
    for other in scene.others():
        submit(other.params)
        run("refine", "feed", "assign", "share", "generate")
        for _ in range(other.running):
            start(str(other.params["taskName"]))
    for component, name, value in scene.KEYS:
        gdpconfig.set_override(component, name, value, who=WHO, why="worked task")
    run("share")


def catalogue(name: str, files: list[tuple[int, int]]) -> None:
    """A closed dataset with these events and bytes, at every storage."""
    from brokerage.models import StorageEndpoint
    from examples.tasks.scene import VO
    from workqueues.models import CatalogueDataset, CatalogueFile, Replica

    dataset = CatalogueDataset.objects.create(vo=VO, name=name, state="closed")
    made = CatalogueFile.objects.bulk_create(
        CatalogueFile(dataset=dataset, lfn=f"{name}._{n:04d}.pool", n_events=events, fsize=size, checksum="00000001")
        for n, (events, size) in enumerate(files, 1)
    )
    storages = list(StorageEndpoint.objects.order_by("name").values_list("name", flat=True))
    Replica.objects.bulk_create(Replica(file=file, storage=storage) for file in made for storage in storages)


def submit(params: dict[str, Any]) -> int:
    """Submit a task as the REST view does: its number."""
    from workqueues.ledger.submit import first_columns
    from workqueues.ledger.submit import submit as submitted
    from workqueues.rules.refine import validate

    if problems := validate(params):
        raise SystemExit(f"{params['taskName']}: {problems[0].field}: {problems[0].message}")
    task, _ = submitted(params, first_columns(params, params["userName"]), params["userName"], WHO)
    return task.id


def run(*agents: str) -> None:
    """Each agent once."""
    from broker_site.foundation.agency.run import run_agent

    for name in agents:
        if run_agent(name, looked=True) is None:
            raise SystemExit(f"the agent {name} failed")


def pilot(queue_name: str) -> UUID:
    """A pilot that the queue knows; its number."""
    from brokerage.ledger.pilots import register
    from brokerage.models import ComputingQueue, Pilot

    queue = ComputingQueue.objects.get(name=queue_name)
    slot = Pilot(id=uuid4(), queue=queue, host="worked", slot=str(uuid4()), core_count=1, memory_mb=4000, disk_mb=queue.maxwdir)
    register(slot)
    return slot.id


def start(task_name: str) -> Lease:
    """The oldest job of a task that waits starts in a pilot of its queue."""
    from brokerage.ledger.heartbeats import SignOfLife, beat
    from brokerage.ledger.lease import lease
    from brokerage.models import Job

    job = Job.objects.filter(task_id=task_named(task_name), status="activated").select_related("computing_queue").earliest("id")
    leased = lease([job.task_queue_id], pilot(job.placed_at.name), uuid4(), LEASE_S)
    if leased is None or beat([SignOfLife(leased.job_id, leased.epoch, "running")]) == [None]:
        raise SystemExit(f"no job of {task_name} could be started")
    return leased


def fail(leased: Lease) -> None:
    """The payload of a running job ends badly."""
    from brokerage.ledger.settle import settle_job
    from brokerage.rules.dispatch.settlement import Report

    report = Report("failed", error_code="PAYLOAD_EXIT", error_message="exit code 1", exit_code=1)
    settle_job(leased.job_id, leased.epoch, report, "pilot")


def drive_by_work_queues() -> None:
    """The other model of shares, for the last step."""
    from broker_site.foundation import gdpconfig
    from examples.tasks.scene import VO

    gdpconfig.set_override("shares", "SHARE_MODEL", "work_queue", vo=VO, who=WHO, why="worked task")
    run("share")


def task_named(name: str) -> int:
    """The number of a task."""
    from workqueues.models import Task

    return Task.objects.get(task_name=name).id


if __name__ == "__main__":
    sys.exit(main())
