"""Pilots that reach a process together: each is told what it would be told alone, and nobody waits for a stranger's lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction

from broker_site.foundation.agency import batches
from broker_site.foundation.agency.batches import code_of
from brokerage.ledger.handing_out import hand_out, handed_out_before
from brokerage.ledger.heartbeats import LeaseState, SignOfLife, beat
from brokerage.ledger.lease import Ask, HeldAtMost
from brokerage.ledger.settle import LastWord, settle_jobs
from brokerage.models import ComputingQueue, Job, JobChange, TaskQueue
from brokerage.queries.job_document import LeasedJob, Untold
from tests.builders import grid
from tests.flow.steps import good, pilot, take, try_take
from tests.ledger.test_races import together, work
from tests.locks import locked

pytestmark = pytest.mark.django_db(transaction=True)


def handed_out(asks: Sequence[Ask]) -> list[list[LeasedJob]]:
    """What each gets, all of which can be told."""
    return [jobs for jobs in hand_out(asks) if not isinstance(jobs, Untold)]


@pytest.fixture
def queue() -> ComputingQueue:
    grid("ALPHA")
    return ComputingQueue.objects.get(name="ALPHA")


def asks(queue: ComputingQueue, pilots: list[UUID], request: UUID | None = None) -> list[Ask]:
    """An ask of each pilot at the one task queue that there is."""
    task_queue = TaskQueue.objects.get(computing_queue=queue).id
    return [Ask(task_queue, each, request or uuid4(), 60.0, HeldAtMost(cores=8, leases=1)) for each in pilots]


def pilots(queue: ComputingQueue, n: int) -> list[UUID]:
    return [pilot(queue, f"slot{i}") for i in range(n)]


def test_each_of_several_asks_gets_a_job_of_its_own_and_none_when_they_are_gone(queue: ComputingQueue) -> None:
    work("asks", 6)
    first = asks(queue, pilots(queue, 4))
    got = handed_out(first)
    assert sorted(map(len, got)) == [0, 1, 1, 1]
    ids = [job.document["id"] for jobs in got for job in jobs]
    held = {job.id: str(job.lease_holder) for job in Job.objects.filter(status="sent")}
    assert sorted(held) == sorted(ids)
    for ask, jobs in zip(first, got, strict=True):
        assert {held[job.document["id"]] for job in jobs} <= {str(ask.pilot)}
    again = next(ask for ask, jobs in zip(first, got, strict=True) if jobs)
    assert [job.document["id"] for job in handed_out_before(again.pilot, again.request)] == [
        job.document["id"] for job in got[first.index(again)]
    ]


def test_asks_of_the_same_pilots_through_two_processes_give_none_more_than_it_may_hold(queue: ComputingQueue) -> None:
    work("twice", 40)
    for _ in range(4):
        crew = [pilot(queue, str(uuid4())) for _ in range(4)]
        one, other = together(partial(hand_out, asks(queue, crew)), partial(hand_out, asks(queue, crew[::-1])))
        assert isinstance(one, list)
        assert isinstance(other, list)
        got = [len(mine) + len(theirs) for mine, theirs in zip(one, other[::-1], strict=True)]
        assert got == [1, 1, 1, 1]
        assert Job.objects.filter(lease_holder__in=crew).count() == 4


def test_who_may_hold_one_job_gets_no_second_and_none_with_more_cores_than_it_has(queue: ComputingQueue) -> None:
    work("one", 4)
    (one,) = asks(queue, [pilot(queue, "one")])
    small = one._replace(pilot=pilot(queue, "small"), most=HeldAtMost(cores=0, leases=1))
    assert [len(jobs) for jobs in handed_out([one, small])] == [1, 0]
    job = Job.objects.get(status="sent")
    assert (job.lease_holder, job.lease_request, job.lease_slot, job.epoch) == (one.pilot, one.request, 0, 1)
    assert list(JobChange.objects.filter(job_id=job.id).order_by("-id").values_list("old", "new", "epoch", "who")[:1]) == [
        ("activated", "sent", 1, f"pilot:{one.pilot}")
    ]
    assert handed_out([one._replace(request=uuid4())]) == [[]], "it holds one"
    assert Job.objects.filter(status="sent").count() == 1


def test_signs_of_life_together_move_those_that_may_and_tell_of_leases_that_are_over(queue: ComputingQueue) -> None:
    work("beats", 8)
    started, sent, ended = (job for jobs in handed_out(asks(queue, pilots(queue, 3))) for job in jobs)
    ids = [started.document["id"], sent.document["id"], ended.document["id"]]
    assert beat([SignOfLife(ids[0], 1, "running")]) != [None]
    states = beat([SignOfLife(ids[0], 1, "starting"), SignOfLife(ids[1], 1, "running"), SignOfLife(ids[2], 9, "running")])
    assert [state and state.status for state in states] == ["running", "running", None]
    assert dict(Job.objects.filter(id__in=ids).values_list("id", "status")) == {
        ids[0]: "running",
        ids[1]: "running",
        ids[2]: "sent",
    }
    assert list(JobChange.objects.filter(job_id=ids[1], new="running").values_list("who", "old")) == [(f"job:{ids[1]}", "sent")]
    assert JobChange.objects.filter(job_id=ids[0], new="running").count() == 1


def test_a_job_that_somebody_works_on_keeps_no_other_waiting(queue: ComputingQueue) -> None:
    """Both are told at last; the free one's lease is prolonged while the other's job is locked."""
    work("locked", 4)
    locked, free = (try_take(queue), try_take(queue))
    assert locked is not None
    assert free is not None
    before = Job.objects.get(id=free.job_id).lease_until
    answers: list[LeaseState | None] = []

    def both() -> None:
        answers.extend(beat([SignOfLife(locked.job_id, locked.epoch), SignOfLife(free.job_id, free.epoch)]))
        connection.close()

    with transaction.atomic():
        Job.objects.select_for_update().get(id=locked.job_id)
        thread = threading.Thread(target=both)
        thread.start()
        while Job.objects.get(id=free.job_id).lease_until == before:
            thread.join(0.01)
        assert thread.is_alive()
    thread.join(10)
    assert [answer and answer.status for answer in answers] == ["running", "running"]


def test_reports_of_a_task_whose_datasets_are_locked_keep_none_of_another_task_waiting(
    queue: ComputingQueue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_said_until", {})
    one, other = work("held", 6), work("free", 6)
    leases = [take(queue) for _ in range(6)]
    words = [LastWord(each.job_id, each.epoch, good(each.job_id), "pilot") for each in leases]
    with locked(f"SELECT FROM workqueues_dataset WHERE task_id = {one.id} FOR UPDATE"):
        began = time.monotonic()
        ends = settle_jobs(words)
        assert time.monotonic() - began < 3
    of_task = {lease.job_id: lease.task_id for lease in leases}
    assert {of_task[word.job_id] for word, end in zip(words, ends, strict=True) if end == "finished"} == {other.id}
    assert [code_of(end) for end in ends if isinstance(end, Exception)] == ["55P03"] * 3
    assert settle_jobs(words) == ["finished"] * 6, "told again, all end"
    (line,) = [record.getMessage() for record in caplog.records if record.name == batches.__name__]
    assert line.startswith("ends of jobs that came together failed, and each is done by itself: ")
