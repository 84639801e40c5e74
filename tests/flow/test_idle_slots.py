"""Slots that idle beside work are counted by queue and hour, with what the work waits for; beside held work apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db.models import F
from django.utils import timezone

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.handing_out import hand_out
from brokerage.ledger.lease import Ask, HeldAtMost
from brokerage.ledger.pilots import note_vain_ask
from brokerage.ledger.site_limits import SiteCount, advertise
from brokerage.models import ComputingQueue, IdleHour, IdleSlot, Pilot
from brokerage.queries.idle_slots import IdleAtQueue, idle_at_queues
from brokerage.queries.waiting import WAITING
from brokerage.queries.world import load_snapshot
from brokerage.rules.dispatch.requirement import Resource
from brokerage.rules.dispatch.site_limits import Advertisement
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import run_agents, take
from tests.locks import locked
from workqueues.models import GlobalShare, Task

pytestmark = pytest.mark.django_db


def ask_in_vain(queue: ComputingQueue, slot: str = "s1", idle_s: float = 20.0, memory_mb: int = 4000) -> UUID:
    """A pilot that asked in vain first so long ago, and just now again."""
    pilot_id = pilot(queue, slot)
    note_vain_ask(pilot_id, queue.id, Resource(queue.name, 1, memory_mb, 10000), 1.0)
    IdleSlot.objects.filter(pilot=pilot_id).update(since=TransactionNow() - timedelta(seconds=idle_s))
    return pilot_id


def let_pass(seconds: float) -> None:
    """So much time goes by since the last look; pilots have asked again."""
    back = timedelta(seconds=seconds)
    IdleHour.objects.update(looked_at=F("looked_at") - back)
    IdleSlot.objects.update(since=F("since") - back, beside_since=F("beside_since") - back)


def look(queue: ComputingQueue) -> IdleAtQueue:
    run_agent("slots", looked=True)
    return idle_at_queues().get(queue.id, IdleAtQueue())


def numbers(idle: IdleAtQueue) -> tuple[int, int, int]:
    return idle.idle, idle.beside, idle.held


def test_a_slot_without_work_is_idle_and_not_beside_work() -> None:
    (queue,) = grid("ALPHA")
    assert look(queue) == IdleAtQueue()
    ask_in_vain(queue, idle_s=20)
    idle = look(queue)
    assert (numbers(idle), idle.why) == ((1, 0, 0), "")
    assert idle.day_s == pytest.approx((20, 0, 0), abs=1)


def test_of_three_slots_beside_one_waiting_job_one_idles_beside_work() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents(3)
    for slot in ("s1", "s2", "s3"):
        ask_in_vain(queue, slot)
    look(queue)
    let_pass(15)
    idle = look(queue)
    assert numbers(idle) == (3, 1, 0)
    assert idle.longest_s == pytest.approx(15, abs=1)
    assert idle.why == "jobs that fit wait here for the next ask of a pilot"
    assert idle.day_s == pytest.approx((60 + 45, 20 + 15, 0), abs=3)


def test_a_slot_that_is_too_small_for_the_jobs_or_of_another_vo_does_not_idle_beside_them() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents(3)
    ask_in_vain(queue, memory_mb=100)
    note_vain_ask(pilot(queue, "s2"), queue.id, Resource(queue.name, 1, vo="other"), 1.0)
    assert numbers(look(queue)) == (2, 0, 0)


def test_a_slot_without_the_tags_of_a_task_does_not_idle_beside_its_jobs_nor_those_that_are_to_be_made() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=100, nEventsPerJob=1, tags=["GPU"]))
    run_agents(3)
    ask_in_vain(queue)
    assert numbers(look(queue)) == (1, 0, 0)
    note_vain_ask(pilot(queue, "s2"), queue.id, Resource(queue.name, 1, 4000, 10000, tags=frozenset(["GPU"])), 1.0)
    assert numbers(look(queue)) == (2, 1, 0)


def test_a_slot_that_got_a_job_or_asks_no_more_is_not_idle() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents(3)
    busy, _gone = ask_in_vain(queue, "s1"), ask_in_vain(queue, "s2")
    look(queue)
    groups = [waiting.id for waiting in WAITING.of(queue.id, fresh=True).rows]
    assert hand_out([Ask(groups[0], busy, uuid4(), 60, HeldAtMost())]) != [[]]
    assert IdleSlot.objects.filter(pilot=busy).count() == 0
    let_pass(5)
    assert numbers(look(queue)) == (1, 0, 0)
    let_pass(5)
    IdleSlot.objects.update(until=F("until") - timedelta(minutes=1))
    assert numbers(look(queue)) == (0, 0, 0)
    assert not IdleSlot.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_row_that_somebody_has_locked_keeps_no_pilot_from_its_job_and_goes_at_the_next_look() -> None:
    (queue,) = grid("ALPHA")
    busy = ask_in_vain(queue)
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents(3)
    groups = [waiting.id for waiting in WAITING.of(queue.id, fresh=True).rows]
    with locked("SELECT FROM brokerage_idleslot FOR UPDATE"):
        assert hand_out([Ask(groups[0], busy, uuid4(), 60, HeldAtMost())]) != [[]]
    assert IdleSlot.objects.exists()
    assert numbers(look(queue)) == (0, 0, 0)


def test_a_pilot_that_said_it_leaves_is_gone_when_its_last_ask_has_ended() -> None:
    """Nobody makes jobs for it any more, also before the next look."""
    (queue,) = grid("ALPHA")
    leaves, stays = pilot(queue, "s1"), pilot(queue, "s2")
    note_vain_ask(leaves, queue.id, Resource(queue.name, 1), 30.0, leaves=False)
    note_vain_ask(leaves, queue.id, Resource(queue.name, 1), 2.0, leaves=True)
    note_vain_ask(stays, queue.id, Resource(queue.name, 1), 2.0)
    assert idle_in_world() == 2
    IdleSlot.objects.update(until=F("until") - timedelta(seconds=2.1))
    assert idle_in_world() == 1
    IdleSlot.objects.update(until=F("until") - timedelta(seconds=15))
    assert idle_in_world() == 0


def idle_in_world() -> int:
    return sum(entry["idle"] for entry in load_snapshot(datetime.now(UTC)).facts.pilots)


def test_a_slot_stands_for_those_that_idled_and_got_a_job_since_the_last_look() -> None:
    """A look each five seconds sees one of five that idle for a second each: it counts for five."""
    (queue,) = grid("ALPHA")
    ask_in_vain(queue, "s1", idle_s=1)
    assert look(queue).day_s[0] == pytest.approx(5, abs=1)
    let_pass(4)
    ask_in_vain(queue, "s2", idle_s=1)
    assert look(queue).day_s[0] == pytest.approx(5 + 2 * 4, abs=1)


def test_a_task_that_waits_though_its_queue_passes_by_now_is_eligible_work() -> None:
    """A queue too small for the task grew meanwhile: the last decision, taken again on present facts, passes it."""
    (queue,) = grid("ALPHA")
    ComputingQueue.objects.update(maxrss=100)
    task = submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "pending"
    ask_in_vain(queue)
    assert numbers(look(queue)) == (1, 0, 0)
    ComputingQueue.objects.update(maxrss=8000)
    idle = look(queue)
    assert (numbers(idle), idle.task_id) == ((1, 1, 0), task.id)
    assert idle.why == f"a task that passes here now waits until {task.next_look_at:%H:%M:%S} UTC"
    Task.objects.update(quarantined_at=F("status_since"))
    assert numbers(look(queue)) == (1, 0, 0)


def test_the_task_that_is_told_to_pass_is_the_one_that_was_decided_upon() -> None:
    """Of two that failed alike one passes by now; the other, which is older, does not."""
    (queue,) = grid("ALPHA")
    ComputingQueue.objects.update(maxrss=100)
    for name, ram in (("large", 1900), ("small", 500)):
        task = submitted(parameters(name, nEvents=10, nEventsPerJob=10, ramCount=ram))
        run_agents(3)
    ComputingQueue.objects.update(maxrss=1000)
    ask_in_vain(queue)
    idle = look(queue)
    assert (numbers(idle), idle.task_id) == ((1, 1, 0), task.id)


def test_work_that_the_throttler_holds_is_counted_apart_with_its_reason() -> None:
    alpha, _ = grid("ALPHA", "BETA")
    set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    set_override("jobbroker", "NQUEUELIMITSITE", 100_000, who="ada", why="test")
    GlobalShare.objects.create(name="MC", vo="demo", value=1, processing_type="evgen")
    ComputingQueue.objects.update(maxrss=100)
    held = submitted(parameters("held"))
    run_agents(3)
    ComputingQueue.objects.update(maxrss=8000)
    submitted(parameters("first", nEvents=400, nEventsPerJob=1, site="BETA"))
    run_agents(3)
    ask_in_vain(alpha)
    idle = look(alpha)
    assert (numbers(idle), idle.why, idle.task_id) == ((1, 0, 1), "", held.id)
    assert idle.why_held == "throttler: 250 jobs wait, more than 2 x 0 that run"
    assert idle.day_s == pytest.approx((20, 0, 20), abs=1)


@pytest.mark.parametrize(("most", "counted"), [(6, (1, 1, 0)), (5, (1, 0, 1))])
def test_jobs_at_a_site_that_takes_no_more_are_held_work(most: int, counted: tuple[int, int, int]) -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents(3)
    ad = Advertisement(max_jobs=most, max_submitting_jobs=9, current_jobs=5, current_submitting_jobs=0)
    advertise(queue.site_id, SiteCount(ad, timezone.now(), ()), "enrolment")
    ask_in_vain(queue)
    idle = look(queue)
    assert numbers(idle) == counted
    full = "the site takes no more: 5 jobs there and 0 matched since, of at most 5 (MaxJobs)"
    assert idle.why_held == ("" if most > 5 else full)


def test_work_that_a_cap_holds_is_counted_apart_with_the_criterion() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters("first", nEvents=20, nEventsPerJob=10))
    run_agents(3)
    take(queue), take(queue)
    set_override("prio_mgr", "CAP_RUNNING_USER_JOBS", 1, app="pandaserver", who="ada", why="test")
    submitted(parameters("second", nEvents=20, nEventsPerJob=10))
    run_agents(3)
    ask_in_vain(queue)
    idle = look(queue)
    assert (numbers(idle), idle.why_held) == ((1, 0, 1), "cap: -cap_running_jobs")


def test_slots_of_a_queue_that_hands_nothing_out_idle_beside_nothing() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents(3)
    ComputingQueue.objects.update(status="offline")
    ask_in_vain(queue)
    assert numbers(look(queue)) == (1, 0, 0)


def test_two_looks_at_once_count_once_and_a_pause_of_the_agent_counts_little() -> None:
    (queue,) = grid("ALPHA")
    ask_in_vain(queue, idle_s=3600)
    assert look(queue).day_s[0] == pytest.approx(30, abs=1)
    assert look(queue).day_s[0] == pytest.approx(30, abs=1)
    let_pass(5)
    assert look(queue).day_s[0] == pytest.approx(35, abs=1)


def test_an_ask_in_vain_again_writes_the_slot_at_most_every_ten_seconds() -> None:
    (queue,) = grid("ALPHA")
    pilot_id = ask_in_vain(queue)
    first = IdleSlot.objects.get()
    note_vain_ask(pilot_id, queue.id, Resource(queue.name, 1), 1.0)
    assert IdleSlot.objects.get().until == first.until
    IdleSlot.objects.update(until=F("until") - timedelta(seconds=11))
    note_vain_ask(pilot_id, queue.id, Resource(queue.name, 1, walltime_s=60), 1.0)
    again = IdleSlot.objects.get()
    assert (again.since, again.walltime_s) == (first.since, 60)
    assert Pilot.objects.filter(idle_slot__isnull=False).count() == 1


def test_hours_are_kept_for_two_days() -> None:
    (queue,) = grid("ALPHA")
    ask_in_vain(queue)
    look(queue)
    IdleHour.objects.update(hour=F("hour") - timedelta(hours=60))
    look(queue)
    assert IdleHour.objects.count() == 1
