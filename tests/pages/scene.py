"""What the page tests look at: a grid of four queues and tasks in many states, made as agents and pilots make them."""

from __future__ import annotations

from dataclasses import dataclass

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import User
from brokerage.models import ComputingQueue
from brokerage.rules.dispatch.settlement import Report
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, ROUND, end, run_agents, run_jobs, try_take
from workqueues.ledger.commands import command
from workqueues.models import CatalogueFile, Replica, Task

PASSWORD = "correct horse"


@dataclass(frozen=True)
class Scene:
    """The tasks by what became of them."""

    done: Task
    failed: Task
    retrying: Task
    running: Task
    pending: Task
    aborted: Task
    fresh: Task
    queues: dict[str, ComputingQueue]


def make_scene() -> Scene:
    """Play it; some seconds."""
    queues = {queue.name: queue for queue in grid("ALPHA", "BETA", "GAMMA", "DELTA")}
    ComputingQueue.objects.filter(name="GAMMA").update(maxrss=2000, corecount=1)
    ComputingQueue.objects.filter(name="DELTA").update(status="offline")
    catalogue_dataset("mc23.input.EVNT", 6)
    _read_everywhere("mc23.input.EVNT")
    done = _made(parameters("mc23.evgen.0001", nEvents=40, nEventsPerJob=10), queues)
    retrying = _made(reading("mc23.reco.0001", "mc23.input.EVNT", prodSourceLabel="managed"), queues, BAD)
    run_agents()
    failed = _made(reading("mc23.reco.broken", "mc23.input.EVNT", maxAttempt=1), queues, BAD)
    run_agents()
    aborted = submitted(parameters("mc23.evgen.killed"))
    run_agents(1)
    command(aborted.id, "kill", "user:ada", "wrong release")
    run_agents(1)
    pending = submitted(parameters("mc23.simul.bigmem", ramCount=64000, userName="grace", taskPriority=800))
    running = submitted(parameters("mc23.evgen.0002", nEvents=300, nEventsPerJob=10, userName="grace"))
    run_agents(1)
    _some_run(running, queues)
    fresh = submitted(parameters("mc23.evgen.0003", userName="grace", taskPriority=300))
    for task in (done, failed, retrying, running, pending, aborted, fresh):
        task.refresh_from_db()
    return Scene(done, failed, retrying, running, pending, aborted, fresh, queues)


def _read_everywhere(dataset: str) -> None:
    """A copy of its files at each site, so that jobs wait for none."""
    files = CatalogueFile.objects.filter(dataset__name=dataset)
    storages = ("BETA_DISK", "GAMMA_DISK", "DELTA_DISK")
    Replica.objects.bulk_create(Replica(file=file, storage=storage) for file in files for storage in storages)


def _made(params: dict[str, object], queues: dict[str, ComputingQueue], report: Report | None = None) -> Task:
    task = submitted(params)
    run_agents(1)
    for queue in queues.values():
        run_jobs(queue, report)
    run_agents(1, ROUND)
    return task


def _some_run(task: Task, queues: dict[str, ComputingQueue]) -> None:
    """Two jobs of the task end well and one runs; jobs of others that come first end well too."""
    ended = 0
    for queue in queues.values():
        while (leased := try_take(queue)) is not None:
            if leased.task_id == task.id:
                ended += 1
                if ended > 2:
                    return
            end(leased)


def visitor(name: str = "ada", role: str = "operator") -> User:
    """Somebody who may look into the VO demo."""
    return ensure_user(name, password=PASSWORD, roles=[("demo", role)])
