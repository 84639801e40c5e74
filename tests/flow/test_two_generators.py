"""Generators in processes of their own, at once: a unit that is locked gets its jobs from one of them, others are not held up."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable

import pytest
from django.db import connection, connections

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import new_run, run_agent
from brokerage.agents.throttling import Throttle
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from workqueues.models import GlobalShare, ProcessLock, Task

pytestmark = pytest.mark.django_db(transaction=True)

KINDS = {"MC": "evgen", "Data": "reco", "Group": "merge"}


@pytest.fixture(autouse=True)
def shares() -> None:
    """A queue that is never full, and a share for each kind of work."""
    gdpconfig.set_override("jobbroker", "NQUEUELIMITSITE", 100_000, who="ada", why="test")
    gdpconfig.set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    grid("ALPHA")
    for name, kind in KINDS.items():
        GlobalShare.objects.create(name=name, vo="demo", value=1, processing_type=kind)


def work(share: str, jobs: int) -> Task:
    """A task of so many jobs, ready for them."""
    task = submitted(parameters(f"{share}{jobs}", processingType=KINDS[share], nEvents=jobs, nEventsPerJob=1))
    for agent in ("refine", "feed", "assign"):
        run_agent(agent, looked=True)
    return task


def at_once(n: int, body: Callable[[], None]) -> None:
    """Run the body in so many processes at once, to their end."""
    connections.close_all()  # a forked process must not share them
    forked = multiprocessing.get_context("fork")
    ready = forked.Barrier(n)
    processes = [forked.Process(target=_wait_and_run, args=(ready, body)) for _ in range(n)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0


def _wait_and_run(ready: object, body: Callable[[], None]) -> None:
    ready.wait()  # type: ignore[attr-defined]
    body()
    connection.close()


def _generate() -> None:
    for _ in range(4):
        run_agent("generate", looked=True)


def per_task() -> dict[int, int]:
    """Task -> its jobs."""
    tasks = list(Job.objects.values_list("task_id", flat=True))
    return {task: tasks.count(task) for task in tasks}


def test_a_unit_gets_no_more_jobs_than_its_verdict_allows_however_many_generators_there_are() -> None:
    task = work("MC", 1000)
    at_once(4, _generate)
    assert per_task() == {task.id: 250}


def test_generators_share_the_units_out() -> None:
    tasks = [work(share, 400) for share in KINDS]
    at_once(3, _generate)
    assert per_task() == {task.id: 250 for task in tasks}


def test_below_its_lower_limit_a_unit_is_not_locked_and_loses_nothing() -> None:
    gdpconfig.set_override("anal_job_throttler", "NQUEUELIMIT_MC", 100_000, who="ada", why="test")
    tasks = [work("MC", 90 + n) for n in range(6)]
    at_once(3, _generate)
    assert per_task() == {task.id: 90 + n for n, task in enumerate(tasks)}
    assert not ProcessLock.objects.exists()


def test_the_lock_of_a_generator_that_was_killed_ends_by_itself() -> None:
    gdpconfig.set_override("agents", "CLAIM", 2.0, who="ada", why="test")
    task = work("MC", 30)
    connections.close_all()
    holder = multiprocessing.get_context("fork").Process(target=_lock_and_hang)
    holder.start()
    while not ProcessLock.objects.exists():
        time.sleep(0.05)
    assert holder.pid is not None
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    began = time.monotonic()
    run_agent("generate", looked=True)
    assert time.monotonic() - began < 2  # it does not wait for the lock
    assert per_task() == {}
    time.sleep(2.1)
    run_agent("generate", looked=True)
    assert per_task() == {task.id: 30}


def _lock_and_hang() -> None:
    Throttle.begin(new_run("generate"))
    time.sleep(60)
