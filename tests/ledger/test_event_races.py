"""Jobs that share a file end at the same time, in processes of their own, while a generator gives out what comes free."""

from __future__ import annotations

import multiprocessing
import random
from functools import partial

import pytest
from django.db import connection, connections

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.expiry import kill_jobs
from brokerage.ledger.settle import settle_job
from brokerage.models import ComputingQueue, Job
from brokerage.queries.invariants import check
from brokerage.rules.dispatch.settlement import JobVersion, Report
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, good, run_agents, run_jobs, try_take
from tests.flow.test_bad_inputs import PRODUCTION
from workqueues.models import Dataset, EventRange, File, Task

pytestmark = pytest.mark.django_db(transaction=True)

CLOSED = Report("failed", error_code="PILOT_STOPPED")


@pytest.fixture
def queue() -> ComputingQueue:
    """A queue of a grid where files that failed are due again at once."""
    set_override("jobbroker", "RETRY_PAUSE", "0s", who="ada", why="test")
    return grid("ALPHA")[0]


def shared_by_events(files: int, events: int) -> Task:
    """A task whose jobs have so many events of its files of ten, jobs made."""
    catalogue_dataset("in.data", files)
    task = submitted(reading("cut", "in.data", nFilesPerJob=None, nEventsPerJob=events, maxAttempt=50, **PRODUCTION))
    run_agents(1)
    return task


def _settle(number: int, jobs: list[tuple[int, int]]) -> int:
    """In a process of its own: end these jobs, well or not: how many."""
    dice = random.Random(number)
    for job_id, epoch in jobs:
        settle_job(job_id, epoch, dice.choice([good(job_id), good(job_id), BAD, CLOSED]), f"pilot{number}")
    connection.close()
    return len(jobs)


def _generate(rounds: int) -> int:
    """In a process of its own: give out what comes free: how many jobs."""
    made = 0
    for _ in range(rounds):
        run_agent("generate", looked=True)
        made = Job.objects.count()
    connection.close()
    return made


def _kill(jobs: list[int]) -> int:
    """In a process of its own: kill jobs that wait."""
    seen = [JobVersion(*row) for row in Job.objects.filter(id__in=jobs).values_list("id", "epoch", "status")]
    killed = kill_jobs(seen, "user:ada", "not wanted")
    connection.close()
    return killed


def test_jobs_of_one_file_that_end_at_once_lose_no_event_and_repeat_none(queue: ComputingQueue) -> None:
    task = shared_by_events(2, 1)
    for turn in range(4):
        leased = [(lease.job_id, lease.epoch) for lease in iter(partial(try_take, queue), None)][:18]
        waiting = list(Job.objects.filter(status="activated").values_list("id", flat=True))
        connections.close_all()  # a forked process must not share them
        with multiprocessing.get_context("fork").Pool(5) as pool:
            ends = [pool.apply_async(_settle, (turn * 3 + n, leased[n::3])) for n in range(3)]
            others = [pool.apply_async(_generate, (3,)), pool.apply_async(_kill, (waiting,))]
            assert sum(end.get(60) for end in ends) == len(leased)
            assert all(other.get(60) is not None for other in others)
        assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []
        for job_id, epoch in Job.objects.filter(status="running").values_list("id", "epoch"):
            settle_job(job_id, epoch, BAD, "pilot")
    run_agents(1)
    while run_jobs(queue):
        run_agents(1)
    run_agents()
    task.refresh_from_db()
    assert task.status == "done", task.error_dialog
    assert set(File.objects.filter(type="input").values_list("status", flat=True)) == {"finished"}
    assert Dataset.objects.get(task_id=task.id, type="input").n_events_used == 20
    assert EventRange.objects.filter(status="done").count() == 20
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []
