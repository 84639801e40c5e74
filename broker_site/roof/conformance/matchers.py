"""Cases against a database of what happens at once: jobs, and matchers that ask for them through the functions of the verb.

A process of its own with a database that is made for it and dropped at the end: one case a line of JSON comes in, one answer a
line goes out. The server is a private one of this process, or that of DATABASE_URL. Source: facts on matching a5, a8.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg2
from django.db import DatabaseError
from psycopg2 import sql

from broker_site.roof.conformance.at_once import WAIT_S, together
from broker_site.roof.conformance.pullers import pulled
from broker_site.roof.embedded import Instance

if TYPE_CHECKING:
    from workqueues.models import Task

INSTANCE = "conformance"
SITE, QUEUE, VO = "A", "Q", "conformance"
CREATE = "CREATE DATABASE {name}"
DROP = "DROP DATABASE IF EXISTS {name} WITH (FORCE)"
FAULTS = (ArithmeticError, AssertionError, LookupError, OSError, RuntimeError, TypeError, ValueError, DatabaseError)
"""What may be wrong with a case; the next one may pass."""
Wanted = Mapping[str, Any]
NOTHING: Wanted = MappingProxyType({})


class Outcome(NamedTuple):
    """What matchers got: jobs, asks that were answered with nothing, and asks that failed."""

    jobs: list[int]
    no_match: int
    errors: int


@contextmanager
def scratch_database() -> Iterator[None]:
    """Django on a new database with our tables, which is dropped in the end."""
    instance = Instance(f"{INSTANCE}-{os.getpid()}")  # one that others use too would end with whoever started it
    services = instance.start(need_redis=False, follow=True)
    name = f"conformance_{os.getpid()}"
    try:
        _run(services.database_url, CREATE, name)
        url = urlsplit(services.database_url)._replace(path=f"/{name}").geturl()
        os.environ.update(services.environment(), DATABASE_URL=url, GRIDBROKER_PROFILE="local", GRIDBROKER_LOG_LEVEL="ERROR")
        os.environ["DJANGO_SETTINGS_MODULE"] = "broker_site.settings"
        import django
        from django.core.management import call_command
        from django.db import connections

        django.setup()
        call_command("migrate", verbosity=0, interactive=False)
        yield
        connections.close_all()
    finally:
        _run(services.database_url, DROP, name)
        instance.stop()
        instance.remove()


def _run(url: str, statement: str, name: str) -> None:
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL(statement).format(name=sql.Identifier(name)))


def task_that_wants(wanted: Wanted) -> Task:
    """A task whose jobs want this, in the words of the cases."""
    from workqueues.models import Task, TaskParams

    names = {"GridCEs": "gridCEs", "PilotTypes": "pilotTypes", "JobTypes": "jobTypes", "Tags": "tags", "Setup": "setup"}
    said = {ours: wanted[theirs] for theirs, ours in (names | {"BannedSites": "bannedSites"}).items() if wanted.get(theirs)}
    owner = {"user_name": wanted.get("Owner") or "somebody", "working_group": wanted.get("OwnerGroup") or ""}
    platforms = wanted.get("Platforms") or [""]
    task = Task(vo=VO, prod_source_label="user", architecture=platforms[0], **owner)
    TaskParams(task=task, task_params=said)
    return task


class Site:
    """One site with one computing queue, emptied for each case."""

    def __init__(self) -> None:
        from brokerage.models import ComputingQueue, Job, JobSpec, RequirementSet, TaskQueue
        from brokerage.models import Site as GridSite
        from brokerage.queries.pilots import QUEUES
        from brokerage.queries.waiting import WAITING

        for model in (JobSpec, Job, TaskQueue, RequirementSet):
            model.objects.all().delete()
        site, _ = GridSite.objects.get_or_create(name=SITE)
        sizes = {"type": "unified", "status": "online", "corecount": 8, "maxrss": 16000, "maxtime": 86400}
        self.queue, _ = ComputingQueue.objects.get_or_create(name=QUEUE, defaults={"site": site, **sizes})
        QUEUES.forget()
        WAITING.forget()

    def task_queue(self, number: int = 0, wanted: Wanted = NOTHING) -> int:
        """The task queue of jobs that want this and so many MB more, where they want sites one of open jobs; made where it is
        missing.
        """
        from brokerage.ledger.task_queues import open_task_queues, task_queues
        from brokerage.rules.placement.slots import Slot

        task = task_that_wants(wanted)
        slot = Slot(1, int(wanted.get("MinRAM") or 1000) + number, 0, int(wanted.get("CPUTime") or 3600))
        if wanted.get("Sites"):
            return open_task_queues(task, [slot], {self.queue.id: (QUEUE, "")})[slot]
        return task_queues(task, [(self.queue.id, slot)])[self.queue.id, slot]

    def insert(self, number: int = 0, wanted: Wanted = NOTHING) -> tuple[int, int]:
        """One more waiting job: its id and that of its task queue. As when jobs are made: a task queue that was removed
        meanwhile, or whose set of values was, is made anew.
        """
        from django.db import IntegrityError, transaction

        from brokerage.ledger.task_queues import keep
        from brokerage.models import Job, JobSpec
        from workqueues.ledger.moves import Stale

        while True:
            columns = {"task_id": 1, "status": "activated", "priority": 1000, "ready_priority": -1000}
            try:
                task_queue = self.task_queue(number, wanted)
                with transaction.atomic():
                    keep([task_queue])
                    queue = None if wanted.get("Sites") else self.queue
                    job = Job.objects.create(task_queue_id=task_queue, computing_queue=queue, **columns)
                    JobSpec.objects.create(job=job, job_name=f"job{job.id}", vo=VO)
                return job.id, task_queue
            except (Stale, IntegrityError):
                continue

    def ask(self) -> list[int]:
        """The jobs that a new pilot gets; empty where it is told that there is nothing."""
        from broker_site.foundation.access.principal import Principal
        from brokerage.api.matching import PilotMatch, resource_of
        from brokerage.ledger.lease import HeldAtMost
        from brokerage.models import Pilot
        from brokerage.queries.pilots import QUEUES
        from brokerage.rules.dispatch.pilot_messages import read_ask

        pilot = Pilot.objects.create(queue=self.queue, host="conformance", slot="1", core_count=8)
        principal = Principal("pilot", "conformance", site=SITE, queues=(QUEUE,), vo=VO, subject=pilot.id)
        if (queue := QUEUES.named(QUEUE)) is None:
            raise LookupError(f"there is no computing queue {QUEUE}")
        ask = read_ask({"request": str(uuid4()), "cores": 1, "memory_mb": 16000, "walltime_s": 86400})
        match = PilotMatch(principal, pilot.id, queue, ask, resource_of(principal, queue, ask), HeldAtMost(8, 1))
        answer = match.tell([])
        return [json.loads(answer.content)["job"]["id"]] if answer.status_code == 200 else []

    def matchers(self, n: int, asks: int | None) -> Outcome:
        """`n` matchers at once, each asking so often, or until it is told that there is nothing."""

        def matcher() -> tuple[list[int], int]:
            got: list[int] = []
            nothing = 0
            while asks is None or len(got) + nothing < asks:
                jobs = self.ask()
                got += jobs
                nothing += not jobs
                if asks is None and not jobs:
                    break
            return got, nothing

        told = together(*[matcher] * n)
        for error in (each for each in told if isinstance(each, Exception)):
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        good = [each for each in told if not isinstance(each, Exception)]
        return Outcome([job for jobs, _ in good for job in jobs], sum(nothing for _, nothing in good), len(told) - len(good))

    def left(self) -> int:
        """Jobs that still wait."""
        from brokerage.models import Job

        return Job.objects.filter(ready_priority__isnull=False).count()


def matched(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Jobs that wait in task queues, and matchers that ask for them."""
    site = Site()
    for number in range(given["waiting_jobs"]):
        site.insert(number % given.get("queues", 1))
    told = site.matchers(given["matchers"], given.get("requests_each"))
    twice = sum(n - 1 for n in Counter(told.jobs).values())
    return {
        "handed_out": len(set(told.jobs)),
        "no_match": told.no_match,
        "handed_twice": twice,
        "errors": told.errors,
        "left": site.left(),
    }


def drained(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Task queues whose jobs have just gone, as this process still knows them, beside some with jobs."""
    from brokerage.ledger.lease import lease
    from brokerage.queries.waiting import WAITING

    site = Site()
    emptied = [site.insert(number)[1] for number in range(given["empty_queues"])]
    for number, (_, jobs) in enumerate(given["queues_with_jobs"].items(), given["empty_queues"]):
        for _ in range(jobs):
            site.insert(number)
    WAITING.of(site.queue.id)
    for task_queue in emptied:
        if lease([task_queue], uuid4(), uuid4(), WAIT_S) is None:
            raise LookupError(f"no job waits in task queue {task_queue}")
    told = site.matchers(1, given["requests"])
    return {"handed_out": len(set(told.jobs)), "no_match": told.no_match}


def removed_and_used(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A job is inserted while its task queue, empty until then, is being removed."""
    from brokerage.ledger.empty_task_queues import remove_empty_task_queues
    from brokerage.queries.task_requirements import requirement_of
    from brokerage.queries.waiting import WAITING

    site, wanted = Site(), {name: value for name, value in (given["queue"] or {}).items() if value is not None}
    place = {"queues": frozenset([QUEUE])} if wanted.get("Sites") else {"queue": QUEUE}
    needs = {**requirement_of(task_that_wants(wanted)).sets, **place}
    lost = without = 0
    for number in range(given["repeat"]):
        site.task_queue(number, wanted)
        _, told = together(lambda: remove_empty_task_queues(100, 0.0), partial(site.insert, number, wanted))
        if isinstance(told, Exception):
            print(f"{type(told).__name__}: {told}", file=sys.stderr)
        task_queue = -1 if isinstance(told, Exception) else told[1]
        rows = {row.id: row for row in WAITING.of(site.queue.id, fresh=True).rows}
        lost += task_queue not in rows
        without += task_queue in rows and any(getattr(rows[task_queue].requirement, name) != needs[name] for name in needs)
    return {"job_lost": lost, "job_in_queue_without_sites": without}


def inserted(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Jobs inserted at once, of so many different requirements."""
    from brokerage.models import Job, TaskQueue

    site = Site()
    kinds = given["distinct_requirements"]
    told = together(*(partial(site.insert, n % kinds, {"Sites": [SITE]}) for n in range(given["parallel_inserts"])))
    for error in (each for each in told if isinstance(each, Exception)):
        raise error
    return {"queues": TaskQueue.objects.count(), "jobs": Job.objects.count()}


ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "matched": matched,
    "drained": drained,
    "removed_and_used": removed_and_used,
    "inserted": inserted,
    "pulled": pulled,
}


def main() -> None:
    """Answer every line until there is none."""
    with scratch_database():
        for line in sys.stdin:
            case = json.loads(line)
            try:
                told: Mapping[str, Any] = {"answer": ANSWERS[case["what"]](case["given"])}
            except (
                ArithmeticError,
                AssertionError,
                LookupError,
                OSError,
                RuntimeError,
                TypeError,
                ValueError,
                DatabaseError,
            ) as error:
                told = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
