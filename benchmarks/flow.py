"""The whole system: jobs in a second from the submission of tasks to the last file, with default policies.

Web server, worker, beat and PostgreSQL run as `up` starts them; simulated pilots, in one process, do what a pilot says of a job
with one input, one output and one log. Beside it stands a third of the rate of a view that does nothing, since a job needs three
requests.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import filling, http, simulated_pilots
from benchmarks.crew import Crew
from benchmarks.harness import Lap, Line, compare
from benchmarks.server import INSTANCE, Bench, bench, tree_cpu_s
from broker_site.roof.supervisor import System, running

QUEUES = 4
VO, USER = "bench", "bench"
REQUESTS = 3
"""Of a job: match, running, report."""
LONGEST_S = 900.0
TOO_MANY = 429


def add_arguments(parser: ArgumentParser) -> None:
    """The sizes."""
    parser.add_argument("--tasks", type=int, default=10, metavar="T", help="tasks of a round (default 10)")
    parser.add_argument("--jobs", type=int, default=2000, metavar="J", help="jobs of a round, of all tasks (default 2000)")
    parser.add_argument("--pilots", type=int, default=32, metavar="P", help="simulated pilots (default 32)")
    parser.add_argument("--run", type=float, default=0.0, metavar="S", help="seconds that a job runs (default 0)")
    parser.add_argument("--finished", type=int, default=0, metavar="N", help="finished jobs that stand in the tables (default 0)")
    parser.add_argument("--rounds", type=int, default=3, metavar="R", help="turns of both legs (default 3)")


def run(options: Namespace) -> Iterator[Line]:
    """A line for each round, then the result: jobs in a second."""
    with bench() as server, system_on(server) as system, http.bare(system) as bare_url:
        if options.finished:
            filling.finished_jobs(server, options.finished)
        queues = some_queues(server)
        campaign = Campaign(server, system, options.jobs // options.tasks, options.tasks)
        with (
            Crew(1, http.Client, system.url, bare_url, []) as crew,
            pilots_at(system.url, dealt(queues), options.pilots, simulated_pilots.Slot(run_s=options.run)) as counts,
        ):
            seen = Readings(server, system)

            def ours() -> Lap:
                return seen.around(lambda: campaign.round(counts))

            def reference() -> Lap:
                lap = crew.do("reference", max(options.jobs, 100))
                return Lap(lap.operations // REQUESTS, lap.seconds, lap.client_cpu_s, None)

            sizes = {name: getattr(options, name) for name in ("tasks", "jobs", "pilots", "run", "finished")}
            for line in compare("flow", "jobs/s", ours, reference, sizes, options.rounds):
                more = {"first_job_s": round(campaign.first_s, 2), "refused": counts.refused[:3]}
                yield {**line, **seen.told(options.pilots), **more} if "ratio" in line else line


@contextmanager
def system_on(server: Bench, instance: str = INSTANCE) -> Iterator[System]:
    """The whole system, on the database of this run."""
    database = {"DATABASE_URL": server.url, "MONITORING_DATABASE_URL": ""}
    with running(instance, prepare=lambda system: (), environment=database) as system:
        yield system


def some_queues(server: Bench, n: int = QUEUES, first: int = 0) -> list[tuple[str, str]]:
    """Sites with a queue and a storage each: the names of the queues, and enrolment secrets."""
    from broker_site.foundation.access.credentials import issue_enrolment
    from brokerage.models import ComputingQueue, QueueStorage, Site, StorageEndpoint
    from workqueues.models import WorkQueue

    WorkQueue.objects.get_or_create(queue_name="default", queue_type="", vo="*", defaults={"queue_order": 1000})
    made = []
    for number in range(first, first + n):
        site = Site.objects.create(name=f"FLOW{number}")
        folder = Path(server.instance.folder) / "flow" / site.name
        folder.mkdir(parents=True, exist_ok=True)
        storage = StorageEndpoint.objects.create(name=f"FLOW{number}_DISK", site=site, free_gb=50_000, path=str(folder))
        size = {"maxrss": 8000, "maxtime": 864_000, "maxwdir": 200_000, "corecount": 1, "corepower": 10}
        releases = {"releases": ["ANY"]}
        queue = ComputingQueue.objects.create(name=f"FLOW{number}_Q", site=site, type="unified", attributes=releases, **size)
        for access in ("read_lan", "read_wan", "write_lan"):
            QueueStorage.objects.create(queue=queue, storage=storage, access=access, position=1)
        made.append((queue.name, issue_enrolment(queue.name).text))
    return made


def dealt(queues: Sequence[tuple[str, str]]) -> simulated_pilots.Where:
    """One pilot after the other goes to each of the queues."""
    return lambda number: queues[number % len(queues)]


@contextmanager
def pilots_at(
    url: str, where: simulated_pilots.Where, pilots: int, slot: simulated_pilots.Slot
) -> Iterator[simulated_pilots.Counts]:
    """The pilots, in a thread with a loop of its own."""
    counts, ready = simulated_pilots.Counts(), threading.Event()
    loop: asyncio.AbstractEventLoop
    work: asyncio.Task[None]

    async def serve() -> None:
        nonlocal loop, work
        loop = asyncio.get_running_loop()
        work = loop.create_task(simulated_pilots.serve(url, where, pilots, slot, counts))
        ready.set()
        with suppress(asyncio.CancelledError):
            await work

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="pilots", daemon=True)
    thread.start()
    ready.wait()
    try:
        yield counts
    finally:
        loop.call_soon_threadsafe(work.cancel)
        thread.join(10)


class Campaign:
    """Rounds of tasks that a user submits."""

    def __init__(self, server: Bench, system: System, files: int, tasks: int) -> None:
        from broker_site.foundation.access.credentials import ensure_user, issue_user_token
        from broker_site.foundation.access.roles import ROLES

        user = ensure_user(USER, roles=[(VO, role) for role in ROLES])
        self.token = issue_user_token(user, vo=VO, note="benchmark").text
        self.server, self.url, self.files, self.tasks, self.number = server, system.url, files, tasks, 0
        self.first_s = 0.0
        self.copies = QUEUES

    def round(self, counts: simulated_pilots.Counts) -> Lap:
        """Submit the tasks of a round and wait until every job has ended."""
        self.number += 1
        names = [f"flow.r{self.number}.t{number}" for number in range(self.tasks)]
        for name in names:
            self.dataset(f"{name}.in", self.files)
        done, jobs, before = 0, self.files * self.tasks, counts.finished
        began, cpu = time.monotonic(), time.process_time()
        self.first_s = 0.0
        for name in names:
            self.submit(name)
        while done < jobs:
            time.sleep(0.02)
            done = counts.finished - before
            if done and not self.first_s:
                self.first_s = time.monotonic() - began
            if time.monotonic() - began > LONGEST_S:
                raise TimeoutError(f"{done} of {jobs} jobs ended in {LONGEST_S:.0f} s; {counts.refused[:3]}")
        return Lap(jobs, time.monotonic() - began, time.process_time() - cpu, None)

    def dataset(self, name: str, files: int) -> None:
        """A dataset of the catalogue of so many files, one for each job, of which the first sites have copies."""
        from workqueues.models import CatalogueDataset, CatalogueFile, Replica

        dataset = CatalogueDataset.objects.create(vo=VO, name=name, owner=USER, state="closed")
        made = CatalogueFile.objects.bulk_create(
            CatalogueFile(dataset=dataset, lfn=f"{name}.{n:06}", fsize=1000, checksum="00000001", n_events=10)
            for n in range(files)
        )
        Replica.objects.bulk_create(Replica(file=file, storage=f"FLOW{at}_DISK") for file in made for at in range(self.copies))

    def submit(self, name: str, **more: Any) -> int:
        """Submit a task over NAME.in, as soon as one more may be; `more` parameters replace those that it has. Its number."""
        body = json.dumps({**parameters(name), **more}).encode()
        head = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        with closing(HTTPConnection(urlsplit(self.url).netloc, timeout=30)) as connection:
            connection.request("POST", "/api/v1/tasks/", body, head)
            answer = connection.getresponse()
            said = json.loads(answer.read())
        if answer.status == TOO_MANY:
            time.sleep(float(answer.headers["Retry-After"]))
            return self.submit(name, **more)
        assert answer.status == 201, said
        return int(said["id"])


def parameters(name: str) -> dict[str, Any]:
    """A task that makes a job of each file of NAME.in."""
    out = {"type": "template", "param_type": "output", "token": "", "dataset": f"{name}.out", "value": f"{name}.out.${{SN}}"}
    return {
        "taskName": name,
        "userName": USER,
        "vo": VO,
        "prodSourceLabel": "managed",
        "taskType": "prod",
        "processingType": "simul",
        "taskPriority": 500,
        "transPath": "run.py",
        "architecture": "",
        "transUses": "",
        "transHome": "",
        "coreCount": 1,
        "ramCount": 1000,
        "skipScout": True,
        "nFilesPerJob": 1,
        "jobParameters": [
            {"type": "template", "param_type": "input", "dataset": f"{name}.in", "value": "--in=${IN}"},
            {"type": "constant", "value": f"--out={name}.out.${{SN}}"},
            out | {"hidden": True},
        ],
        "log": {"type": "template", "param_type": "log", "dataset": f"{name}.log", "value": f"{name}.log.${{SN}}.tgz"},
    }


class Readings:
    """CPU time by process and idle slots, over all rounds but the first, which warms up."""

    def __init__(self, server: Bench, system: System) -> None:
        self.server, self.system = server, system
        self.jobs, self.seconds, self.rounds = 0, 0.0, 0
        self.used: dict[str, float] = {}
        self.idle = self.beside = 0.0

    def around(self, work: Any) -> Lap:
        """Do the work of a round."""
        cpu, idle = self._cpu(), self._idle()
        lap: Lap = work()
        self.rounds += 1
        if self.rounds > 1:
            after = self._cpu()
            self.used = {name: self.used.get(name, 0.0) + after[name] - cpu[name] for name in after}
            self.used["client"] = self.used.get("client", 0.0) + lap.client_cpu_s
            self.jobs, self.seconds = self.jobs + lap.operations, self.seconds + lap.seconds
            idle_after = self._idle()
            self.idle, self.beside = self.idle + idle_after[0] - idle[0], self.beside + idle_after[1] - idle[1]
        return lap

    def _cpu(self) -> dict[str, float]:
        used = {name: tree_cpu_s(child.pid) for name, child in self.system.children.items() if child.pid and name != "bare"}
        return used | {"postgres": self.server.cpu_s() or 0.0}

    def _idle(self) -> tuple[float, float]:
        hours = "SELECT coalesce(sum({}), 0) FROM brokerage_idlehour"
        return self.server.number(hours.format("idle_s")), self.server.number(hours.format("beside_s"))

    def told(self, pilots: int) -> Line:
        """CPU of a job by process, ms; idle slots as shares of slot time."""
        slots_s = max(self.seconds * pilots, 1e-9)
        return {
            "cpu_ms_per_job": {name: round(1000 * used / max(self.jobs, 1), 2) for name, used in sorted(self.used.items())},
            "idle": round(self.idle / slots_s, 4),
            "idle_beside_work": round(self.beside / slots_s, 4),
            "cores": os.cpu_count(),
        }
