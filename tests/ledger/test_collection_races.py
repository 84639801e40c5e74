"""Outputs on their way while others act on their jobs: movers in several threads, kills, pilots that repeat themselves.

Real connections to PostgreSQL in threads; after each race every invariant of the data holds, and every job has one end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from brokerage.ledger.expiry import kill_jobs
from brokerage.ledger.settle import LastWord, settle_jobs
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import ComputingQueue, Job, JobChange, JobInput, Transfer, TransferWish
from brokerage.queries.invariants import check
from brokerage.queries.jobs import live_jobs
from tests.builders import catalogue_dataset, reading
from tests.flow.collecting import PRODUCTION, nucleus_grid, running
from tests.flow.steps import good, take
from workqueues.ledger.moves import Stale
from workqueues.models import CatalogueFile, Dataset, File, Replica, Task

pytestmark = pytest.mark.django_db(transaction=True)

JOBS = 12


@pytest.fixture
def queue() -> Iterator[ComputingQueue]:
    """Whatever happened in the test, every invariant holds after it."""
    yield nucleus_grid()
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def work() -> Task:
    catalogue_dataset("in.data", JOBS)
    return running(reading("t", "in.data", nFilesPerJob=1, maxAttempt=50, **PRODUCTION))


def together(*works: Callable[[], object]) -> list[object]:
    """Run all at the same time, each on a connection of its own: what they give."""

    def alone(work: Callable[[], object]) -> object:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return [each.result() for each in [pool.submit(alone, work) for work in works]]


def bringing(ids: list[int], seed: int, lost: float = 0.0) -> Callable[[], int]:
    """A mover that ends these transfers in an order of its own, a few at once."""

    def move() -> int:
        chance, ended = random.Random(seed), 0
        order = chance.sample(ids, len(ids))
        while order:
            batch = [TransferMove(order.pop(), "x", reason="quota") for _ in range(min(len(order), chance.randint(1, 4)))]
            if chance.random() < lost:
                ended += len(end_unmet(batch, "failed", "mover"))
            else:
                ended += len(finish(batch, "mover"))
        return ended

    return move


def depart(queue: ComputingQueue) -> list[LastWord]:
    leases = [take(queue) for _ in range(JOBS)]
    words = [LastWord(leased.job_id, leased.epoch, good(leased.job_id), "pilot") for leased in leases]
    assert set(settle_jobs(words)) == {"transferring"}
    return words


def open_transfers() -> list[int]:
    return list(Transfer.objects.filter(ended_at=None).values_list("id", flat=True))


@pytest.mark.parametrize("seed", range(3))
def test_movers_that_end_the_same_transfers_finish_each_job_once(queue: ComputingQueue, seed: int) -> None:
    work()
    depart(queue)
    ids = open_transfers()
    ended = together(*(bringing(ids, seed * 10 + n) for n in range(4)))
    assert sum(map(int, map(str, ended))) == 2 * JOBS
    assert set(Job.objects.values_list("status", flat=True)) == {"finished"}
    assert JobChange.objects.filter(new="finished").count() == JOBS
    data = Dataset.objects.get(type="input")
    assert (data.n_files_on_hold, data.n_files_finished) == (0, JOBS)
    assert not CatalogueFile.objects.filter(moving=True).exists()


@pytest.mark.parametrize("seed", range(4))
def test_jobs_that_are_killed_while_their_outputs_arrive_leave_nothing_half_done(queue: ComputingQueue, seed: int) -> None:
    task = work()
    words = depart(queue)
    ids = open_transfers()

    def kill() -> int:
        chance = random.Random(seed)
        for _ in range(4):
            jobs = live_jobs(task.id)
            kill_jobs(chance.sample(jobs, min(len(jobs), 3)), "ada", "killed")
        return 0

    def repeat() -> int:
        said = [str(answer) if not isinstance(answer, Stale) else "stale" for answer in settle_jobs(words)]
        assert set(said) <= {"transferring", "finished", "stale"}
        return 0

    together(kill, kill, repeat, bringing(ids, seed, lost=0.2), bringing(ids, seed + 100))
    ended = set(Job.objects.values_list("status", flat=True))
    assert ended <= {"finished", "failed", "cancelled"}
    assert not TransferWish.objects.filter(closed_at=None).exists()
    kept = File.objects.filter(type="log", status="finished").values(
        "lfn"
    )  # a log that is not brought holds no job up, and stays
    withdrawn = Replica.objects.filter(file__moving=True).exclude(file__lfn__in=kept)
    assert set(withdrawn.values_list("state", flat=True)) <= {"deleting"}
    assert Dataset.objects.get(type="input").n_files_on_hold == 0
    assert not JobInput.objects.filter(status="live").exists()


def test_pilots_that_settle_at_the_same_time_do_not_wait_for_each_other_in_a_circle(queue: ComputingQueue) -> None:
    work()
    leases = [take(queue) for _ in range(JOBS)]
    words = [LastWord(leased.job_id, leased.epoch, good(leased.job_id), "pilot") for leased in leases]
    together(*(lambda part=part: settle_jobs(words[part::4]) for part in range(4)))
    assert Job.objects.filter(status="transferring").count() == JOBS
    assert Dataset.objects.get(type="input").n_files_on_hold == JOBS
