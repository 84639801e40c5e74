"""Reports that reach a process at the same time: who goes with whom, and what each is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from brokerage.ledger import joint_ends
from brokerage.ledger.joint_ends import JointEnds
from brokerage.ledger.settle import LastWord
from brokerage.models import ComputingQueue, Job
from brokerage.queries.invariants import check
from brokerage.rules.dispatch.settlement import Report
from tests.builders import grid
from tests.flow.steps import good, take
from tests.ledger.test_races import together, work
from workqueues.ledger.moves import Stale


def word(job_id: int) -> LastWord:
    return LastWord(job_id, 1, Report("finished"), "pilot")


class Slow:
    """Settles what it is given once it is let; `groups`: the jobs of each transaction."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.let = threading.Event()

    def __call__(self, words: Sequence[LastWord]) -> Sequence[str | Stale]:
        self.groups.append([each.job_id for each in words])
        assert self.let.wait(10)
        if any(each.job_id == 13 for each in words):
            raise RuntimeError("the database is away")
        return [f"end of {each.job_id}" for each in words]


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


class Reporters:
    """Threads that report; each but the first waits for the first."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.pool, self.settle = pool, Slow()
        self.ends = JointEnds(self.settle)
        self.first = self.report(1)
        until(lambda: self.settle.groups == [[1]])

    def report(self, *jobs: int) -> Future[list[str | Stale]]:
        """Reports these jobs in a thread of its own; back when the thread waits or settles."""
        waiting, groups = len(self.ends._waiting), len(self.settle.groups)
        future = self.pool.submit(self.ends.end, [word(job_id) for job_id in jobs])
        until(lambda: len(self.ends._waiting) > waiting or len(self.settle.groups) > groups)
        return future


@pytest.fixture
def reporters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reporters]:
    """The first of the threads settles the job 1, and is not let."""
    monkeypatch.setattr(joint_ends, "PATIENCE_S", 5.0)
    with ThreadPoolExecutor(8) as pool:
        there = Reporters(pool)
        yield there
        there.settle.let.set()


def test_what_comes_while_another_is_settled_goes_together_in_the_next_transaction(reporters: Reporters) -> None:
    others = [reporters.report(2), reporters.report(3, 4), reporters.report(5)]
    reporters.settle.let.set()
    assert reporters.first.result(10) == ["end of 1"]
    assert [each.result(10) for each in others] == [["end of 2"], ["end of 3", "end of 4"], ["end of 5"]]
    assert reporters.settle.groups == [[1], [2, 3, 4, 5]]


def test_a_fault_is_told_to_those_who_went_together_and_to_nobody_else(reporters: Reporters) -> None:
    others = [reporters.report(2), reporters.report(13)]
    reporters.settle.let.set()
    assert reporters.first.result(10) == ["end of 1"]
    for each in others:
        with pytest.raises(RuntimeError, match="the database is away"):
            each.result(10)
    assert reporters.report(6).result(10) == ["end of 6"]


def test_one_job_told_of_twice_is_settled_twice_and_not_in_one_transaction(reporters: Reporters) -> None:
    others = [reporters.report(2), reporters.report(2), reporters.report(3)]
    reporters.settle.let.set()
    assert [each.result(10) for each in others] == [["end of 2"], ["end of 2"], ["end of 3"]]
    assert reporters.settle.groups == [[1], [2, 3], [2]]


def test_who_waits_for_a_lock_of_others_goes_by_itself(reporters: Reporters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_ends, "PATIENCE_S", 0.01)
    other = reporters.report(2)
    until(lambda: reporters.settle.groups == [[1], [2]])
    assert not reporters.first.done()
    reporters.settle.let.set()
    assert other.result(10) == ["end of 2"]


@pytest.mark.django_db(transaction=True)
def test_many_reports_at_once_end_every_job_once() -> None:
    grid("ALPHA")
    work("joint", 24)
    queue, ends = ComputingQueue.objects.get(name="ALPHA"), JointEnds()
    leases = [take(queue) for _ in range(12)]
    words = [LastWord(each.job_id, each.epoch, good(each.job_id), "pilot") for each in leases]
    answers = together(*(partial(ends.end, [each]) for each in [*words, words[0]]))
    assert answers == [["finished"]] * 13
    assert Job.objects.filter(status="finished").count() == 12
    assert not [finding for finding in check() if finding.violations]
