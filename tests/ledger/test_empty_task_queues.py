"""Task queues in which no job waits any more go after a while; none goes under a job that is being put there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.test import Client

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.kernel import clock
from brokerage.agents import reap
from brokerage.ledger.empty_task_queues import remove_empty_task_queues
from brokerage.ledger.task_queues import keep, requirement_set, task_queues
from brokerage.ledger.urgency import Urgency, raise_tasks
from brokerage.models import ComputingQueue, Job, RequirementPlace, RequirementSet, RequirementValue, TaskQueue
from brokerage.queries.invariants import check
from brokerage.queries.unit_jobs import jobs_by_group
from brokerage.queries.waiting import WAITING
from brokerage.rules.placement.slots import Slot
from monitoring.queries.job import find_job
from tests.api.people import person
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.ledger.moves import Stale
from workqueues.models import GlobalShare, Task, TaskParams

pytestmark = pytest.mark.django_db(transaction=True)

EMPTY_S = 300.0


@pytest.fixture
def queue() -> Iterator[ComputingQueue]:
    """One computing queue; every invariant holds after the test."""
    (made,) = grid("ALPHA")
    yield made
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def unused_for(seconds: float) -> None:
    """Nobody has put jobs anywhere for so long."""
    with connection.cursor() as cursor:
        for table in ("brokerage_taskqueue", "brokerage_requirementset"):
            cursor.execute(f"UPDATE {table} SET used_at = now() - make_interval(secs => %s)", [seconds])


def a_task_queue(queue: ComputingQueue, ram: int = 7) -> int:
    """An empty one."""
    task = Task(vo="demo", prod_source_label="user")
    TaskParams(task=task, task_params={})
    slot = Slot(1, ram, 0, 0)
    return task_queues(task, [(queue.id, slot)])[queue.id, slot]


def test_a_task_queue_goes_once_it_was_empty_for_the_configured_time(queue: ComputingQueue) -> None:
    submitted(parameters())
    run_agents(1)
    unused_for(3600)
    assert remove_empty_task_queues(100, EMPTY_S) == 0, "jobs wait there"
    assert run_jobs(queue) == 4
    assert remove_empty_task_queues(100, EMPTY_S) == 0, "they waited there until just now"
    unused_for(EMPTY_S + 1)
    assert remove_empty_task_queues(100, EMPTY_S) == 1
    assert not TaskQueue.objects.exists()
    assert not Job.objects.filter(ended_at=None).exists()


def test_the_agent_reap_removes_them_by_the_configuration(queue: ComputingQueue) -> None:
    gdpconfig.set_override("dispatch", "EMPTY_TASK_QUEUE", "1min", who="test", why="shorter")
    a_task_queue(queue)
    reap.TASK_QUEUES._last = None
    unused_for(59)
    run_agent("reap", looked=True)
    assert TaskQueue.objects.count() == 1
    reap.TASK_QUEUES._last = None
    unused_for(61)
    run_agent("reap", looked=True)
    assert not TaskQueue.objects.exists()


def test_a_live_job_keeps_its_task_queue_whatever_it_does(queue: ComputingQueue) -> None:
    submitted(parameters(nEvents=10))
    run_agents(1)
    leased = take(queue)
    grid("BETA")
    ComputingQueue.objects.filter(id=queue.id).update(status="offline")
    catalogue_dataset("far.in", 2)
    moving = submitted(reading("moving", "far.in", prodSourceLabel="managed"))
    run_agents(1)
    assert list(Job.objects.filter(task_id=moving.id).values_list("status", flat=True)) == ["assigned"]
    unused_for(3600)
    assert remove_empty_task_queues(100, EMPTY_S) == 0
    assert sum(counts.running for counts in jobs_by_group().values()) == 1, "the throttler sees whose the running one is"
    end(leased)


def test_a_task_queue_that_is_kept_does_not_keep_others_from_going(queue: ComputingQueue) -> None:
    submitted(parameters(nEvents=10))
    run_agents(1)
    leased = take(queue)
    unused_for(3600)
    empty = a_task_queue(queue)
    TaskQueue.objects.filter(id=empty).update(used_at=TaskQueue.objects.exclude(id=empty).get().used_at)
    assert [remove_empty_task_queues(1, EMPTY_S) for _ in range(2)].count(1) == 1
    assert not TaskQueue.objects.filter(id=empty).exists()
    end(leased)


def test_requirement_sets_go_with_the_last_task_queue_that_has_them(queue: ComputingQueue) -> None:
    used, unused = (requirement_set({"sites": {name}}, {queue.id: ("ALPHA", "DISK")}) for name in ("A", "B"))
    TaskQueue.objects.create(vo="demo", requirement_set_id=used)
    unused_for(3600)
    TaskQueue.objects.update(used_at="2100-01-01T00:00Z")
    remove_empty_task_queues(100, EMPTY_S)
    assert list(RequirementSet.objects.values_list("id", flat=True)) == [used]
    assert not RequirementValue.objects.filter(requirement_set_id=unused).exists()
    assert not RequirementPlace.objects.filter(requirement_set_id=unused).exists()
    unused_for(3600)
    assert remove_empty_task_queues(100, EMPTY_S) == 1
    assert not RequirementSet.objects.exists()


def test_jobs_that_have_ended_are_shown_when_their_task_queue_is_gone(queue: ComputingQueue) -> None:
    submitted(parameters(nEvents=10))
    run_agents(1)
    end(take(queue), BAD)
    unused_for(3600)
    job = Job.objects.earliest("id")
    Job.objects.exclude(id=job.id).delete()
    assert remove_empty_task_queues(100, EMPTY_S) == 1
    for scope in (VoScope(everything=True), VoScope(everything=False, names=frozenset({"demo"}))):
        assert find_job(job.id, scope) is not None
    assert find_job(job.id, VoScope(everything=False, names=frozenset({"other"}))) is None
    caller = Client()
    caller.force_login(ensure_user("root", superuser=True))
    for address in (f"/jobs/{job.id}/", f"/admin/brokerage/job/{job.id}/change/", "/admin/brokerage/job/"):
        assert caller.get(address).status_code == 200, address
    answer = person("ada", ("demo", "auditor")).get(f"jobs/{job.id}/")
    assert (answer.status_code, answer.json()["status"]) == (200, "failed")


def test_none_is_removed_while_jobs_are_put_there(queue: ComputingQueue) -> None:
    task_queue = a_task_queue(queue)
    unused_for(3600)
    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        keep({task_queue})
        assert pool.submit(_removed).result(30) == 0
    unused_for(3600)
    with transaction.atomic():
        assert remove_empty_task_queues(10, EMPTY_S) == 1
        pool = ThreadPoolExecutor(1)
        late = pool.submit(_kept, task_queue)
        wait_until_blocked(late)
    assert isinstance(late.result(30), Stale), "and the generator makes its jobs anew"
    pool.shutdown()


def wait_until_blocked(late: Future[Stale | None]) -> None:
    """Until the other connection waits for a lock of this one."""
    for _ in range(300):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)) AND NOT granted")
            if cursor.fetchone()[0]:
                return
        assert not late.done()
        time.sleep(0.05)
    raise AssertionError("it never waited")


def _removed(empty_s: float = EMPTY_S) -> int:
    try:
        return remove_empty_task_queues(100, empty_s)
    finally:
        connection.close()


def _kept(task_queue: int) -> Stale | None:
    try:
        with transaction.atomic():
            keep({task_queue})
    except Stale as stale:
        return stale
    finally:
        connection.close()
    return None


def test_a_generator_at_work_loses_nothing_to_a_remover_that_never_rests(queue: ComputingQueue) -> None:
    """The remover takes what is not used at this very moment: jobs are made, or made anew, and none lacks its task queue."""
    over, removed = threading.Event(), list[int]()

    def remove() -> None:
        while not over.is_set():
            removed.append(_removed(0.0))

    with ThreadPoolExecutor(2) as pool:
        removers = [pool.submit(remove) for _ in range(2)]
        for each in range(12):
            submitted(parameters(f"t{each}", ramCount=100 + each, nEvents=20))
            run_agents(1)
            run_jobs(queue)
        over.set()
        for remover in removers:
            remover.result(30)
    Task.objects.filter(locked_by__gt="").update(locked_time=clock.now())
    run_agents(3)
    run_jobs(queue)
    run_agents(2)
    assert sum(removed) > 0
    assert set(Task.objects.values_list("status", flat=True)) == {"done"}


def test_jobs_that_move_to_another_share_find_a_task_queue_there(queue: ComputingQueue) -> None:
    GlobalShare.objects.create(vo="demo", name="Work", value=50, prod_source_label=".*")
    GlobalShare.objects.create(vo="demo", name="Express", value=50, prod_source_label="none")
    task = submitted(parameters())
    run_agents(1)
    over, removed = threading.Event(), list[int]()

    def remove() -> None:
        while not over.is_set():
            removed.append(_removed(0.0))

    with ThreadPoolExecutor(1) as pool:
        remover = pool.submit(remove)
        for each in range(40):
            share = "Express" if each % 2 == 0 else "Work"
            assert raise_tasks([Urgency(task.id, 600 + each, share, "test")]) == 1
        over.set()
        remover.result(30)
    assert sum(removed) > 0
    assert set(Job.objects.values_list("task_queue__gshare", flat=True)) == {"Work"}
    assert len(WAITING.of(queue.id, fresh=True).rows) == 1
