"""No queue gets more jobs in a round than it has room for, whoever they are for."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.postgres.functions import TransactionNow

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import run_agent
from brokerage.agents import generate
from brokerage.ledger.pilots import note_vain_ask
from brokerage.models import ComputingQueue, Job, JobChange, PlacementRound
from brokerage.rules.dispatch.requirement import Resource
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import end, run_agents, take, try_take
from workqueues.models import Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def queues() -> list[ComputingQueue]:
    """One slot at ALPHA and six at BETA, all idle."""
    gdpconfig.set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    alpha, beta = grid("ALPHA", "BETA")
    ask_in_vain(alpha, 1)
    ask_in_vain(beta, 6)
    return [alpha, beta]


def ask_in_vain(queue: ComputingQueue, slots: int) -> None:
    for _ in range(slots):
        note_vain_ask(pilot(queue, str(uuid4())), queue.id, Resource(queue.name, 1, 4000, 10000, 0, ""), 1.0)


def jobs_at() -> Counter[str]:
    return Counter(Job.objects.values_list("computing_queue__name", flat=True))


def generated(*tasks: str) -> Counter[str]:
    """The jobs of tasks of twenty jobs each, by queue, of one run of generate."""
    for name in tasks:
        submitted(parameters(name, nEvents=20, nEventsPerJob=1))
    for agent in ("refine", "feed", "assign"):
        run_agent(agent, looked=True)
    run_agent("generate", looked=True)
    return jobs_at()


def test_a_block_is_no_larger_than_the_slots_of_the_queue(queues: list[ComputingQueue]) -> None:
    """Defect E6: 14 of 16 jobs went to a queue with one slot, while six idled elsewhere."""
    assert generated("one") == {"ALPHA": 1, "BETA": 6}


def test_jobs_of_all_tasks_of_a_run_and_of_all_runs_count(queues: list[ComputingQueue]) -> None:
    assert generated("one", "two") == {"ALPHA": 1, "BETA": 6}
    run_agents(names=("generate",))
    assert jobs_at() == {"ALPHA": 1, "BETA": 6}
    for _ in range(6):
        take(queues[1])
    Task.objects.update(next_look_at=None)  # the pause before full queues are looked at again is over
    run_agent("generate", looked=True)
    assert jobs_at()["ALPHA"] == 1
    assert jobs_at()["BETA"] > 6


def test_a_queue_where_no_pilot_asked_gets_work_for_pilots_on_demand() -> None:
    gdpconfig.set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    grid("ALPHA")
    assert generated("one", "two") == {"ALPHA": 20}


def test_what_began_in_the_last_two_rounds_may_wait_twice(queues: list[ComputingQueue]) -> None:
    alpha, _ = queues
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    assert generated("one") == {"ALPHA": 1}
    rounds = []
    for _ in range(3):  # jobs so short that they end before the next round
        while (leased := try_take(alpha)) is not None:
            end(leased)
        Task.objects.update(next_look_at=None)
        run_agent("generate", looked=True)
        rounds.append(jobs_at()["ALPHA"])
    assert rounds == [3, 9, 20]  # twice 1, twice 1 + 2, and what is left of twice 2 + 6
    assert PlacementRound.objects.count() == 2


def test_what_began_long_before_a_round_lets_no_more_wait(queues: list[ComputingQueue]) -> None:
    """Seen: a minute after a burst of short jobs 13 of 20 long ones waited at a queue with one slot, while six slots idled."""
    alpha, _ = queues
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    generated("short")
    while (leased := try_take(alpha)) is not None:
        end(leased)
        Task.objects.update(next_look_at=None)
        run_agent("generate", looked=True)
    before = jobs_at()
    JobChange.objects.update(at=TransactionNow() - timedelta(minutes=1))
    ComputingQueue.objects.filter(name="BETA").update(status="online")
    assert generated("long") - before == {"ALPHA": 1, "BETA": 6}


def test_a_run_is_told_to_look_again_where_room_comes_unheard_and_not_at_rest(
    queues: list[ComputingQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pilots that take jobs make room and tell nobody; a task whose queues are full rests while its room comes."""
    later: list[float] = []
    monkeypatch.setattr(generate, "look_later", lambda name, seconds: later.append(seconds))
    monkeypatch.setattr(generate, "FULL_S", 30.0)
    generated("one")
    assert later == [generate.FULL_S], "it made jobs, which pilots take"
    for _ in range(3):
        run_agent("generate", looked=True)
    at_rest = len(later)
    rests = Task.objects.filter(next_look_at__isnull=False)
    assert rests.update(next_look_at=TransactionNow() + timedelta(seconds=20)) == 1
    run_agent("generate", looked=True)
    assert len(later) == at_rest
    take(queues[1])
    rests.update(next_look_at=TransactionNow() + timedelta(seconds=20))
    run_agent("generate", looked=True)
    assert len(later) == at_rest + 1
    assert 0 < later[-1] <= 20, "a job moved while the task rests"


def test_tasks_whose_queues_are_full_end_their_rests_together(
    queues: list[ComputingQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one of low priority is alone awake when a pilot makes room, and takes it from one of high priority that rests."""
    day_s = 86400.0
    monkeypatch.setattr(generate, "FULL_S", day_s)
    monkeypatch.setattr(generate, "LONGEST_FULL_S", 2 * day_s)
    generated("low")
    run_agent("generate", looked=True)
    low = Task.objects.get(next_look_at__isnull=False)
    submitted(parameters("high", nEvents=20, nEventsPerJob=1, taskPriority=900))
    for agent in ("refine", "feed", "assign", "generate"):
        run_agent(agent, looked=True)
    high = Task.objects.exclude(id=low.id).get()
    assert high.next_look_at == low.next_look_at
    Task.objects.update(next_look_at=TransactionNow() - timedelta(seconds=1))  # both rests are over
    take(queues[1])
    run_agent("generate", looked=True)
    assert Counter(Job.objects.values_list("task_id", flat=True)) == {low.id: 7, high.id: 2}


def test_room_goes_to_a_task_of_high_priority_that_rests_before_one_of_low_priority_that_does_not(
    queues: list[ComputingQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of a task with many others beside it is long; the room of pilots that end meanwhile was all for the others."""
    monkeypatch.setattr(generate, "FULL_S", 20.0)
    generated("low")
    submitted(parameters("high", nEvents=20, nEventsPerJob=1, taskPriority=900))
    for agent in ("refine", "feed", "assign", "generate"):
        run_agent(agent, looked=True)
    low, high = Task.objects.order_by("id")
    assert high.next_look_at is not None
    take(queues[1])
    Task.objects.filter(id=low.id).update(next_look_at=None)
    run_agent("generate", looked=True)
    assert Counter(Job.objects.values_list("task_id", flat=True)) == {low.id: 7, high.id: 2}
    assert not Task.objects.exclude(locked_by="").exists()
