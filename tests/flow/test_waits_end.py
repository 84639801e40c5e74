"""Tasks that found no place go on as soon as what they wait for is over, as many as there is room for."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.agents import free
from brokerage.ledger import grid_overrides
from brokerage.ledger.look_now import look_at_queue
from brokerage.ledger.pilots import note_vain_ask
from brokerage.models import ComputingQueue, IdleSlot, Job, LocalOverride, Pilot, Site, StorageEndpoint, TaskWait, WaitGroup
from brokerage.rules.decision.assembly import DecisionRequest, TaskDecision, decide_task
from brokerage.rules.dispatch.requirement import Resource
from brokerage.rules.placement.wait_cause import LOOK_NOW
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import end, run_agents, take, try_take
from tests.locks import locked
from workqueues.ledger.commands import command
from workqueues.models import Task

pytestmark = pytest.mark.django_db


def let_judge(seconds: float = 60.0) -> None:
    """Groups were judged so long ago; after the usual time they may be judged again."""
    WaitGroup.objects.update(judged_at=Now() - timedelta(seconds=seconds))


def judged_at() -> datetime:
    return WaitGroup.objects.get().judged_at


def waiting(n: int = 1, name: str = "waits", **more: object) -> list[Task]:
    """Tasks of one job each that found no queue."""
    tasks = [submitted(parameters(f"{name}{number}", nEvents=10, nEventsPerJob=10, **more)) for number in range(n)]
    run_agents(6, ("refine", "feed", "assign", "generate"))
    for task in tasks:
        task.refresh_from_db()
        assert task.status == "pending", (task.status, task.error_dialog)
    return tasks


def freed() -> int:
    """Run the agent free: how many tasks are due for the next look."""
    run_agent("free", looked=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM workqueues_task WHERE status = 'pending' AND next_look_at <= now()")
        return int(cursor.fetchone()[0])


def change(queue: ComputingQueue, attribute: str, value: str) -> None:
    """An operator sets an override."""
    override = LocalOverride(kind="queue", name=queue.name, attribute=attribute, value=value, reason="repaired", who="ada")
    grid_overrides.set_override(override)


def without_pilots(queue: ComputingQueue) -> None:
    Pilot.objects.filter(queue=queue).update(last_seen="2020-01-01T00:00Z")


def test_an_override_that_mends_a_queue_frees_the_task_at_once() -> None:
    (queue,) = grid("ALPHA")
    (task,) = waiting(ramCount=9000)
    assert freed() == 0
    change(queue, "maxrss", "16000")
    assert freed() == 1
    run_agents()
    assert Job.objects.filter(task_id=task.id).exists()


def test_a_change_of_the_configuration_frees_the_task() -> None:
    grid("ALPHA")
    set_override("anal_jobbroker", "STORAGE_MIN_FREE_SIZE_OUTPUT", 10_000, who="ada", why="test")
    waiting()
    assert freed() == 0
    set_override("anal_jobbroker", "STORAGE_MIN_FREE_SIZE_OUTPUT", 10, who="ada", why="test")
    assert freed() == 1


def test_a_pilot_that_asks_in_vain_frees_what_waited_for_a_pilot() -> None:
    (queue,) = grid("ALPHA")
    without_pilots(queue)
    waiting()
    let_judge()
    assert freed() == 0
    note_vain_ask(pilot(queue, "s2"), queue.id, Resource(queue.name, 1, 4000, 10000), 1.0)
    let_judge()
    assert freed() == 1


def test_a_slot_that_begins_to_idle_frees_at_once_what_was_judged_a_second_ago() -> None:
    """Seen: 32 pilots idled for seconds beside tasks whose queues had been full a moment before; 30 jobs/s, not 250."""
    (queue,) = grid("ALPHA")
    without_pilots(queue)
    waiting()
    let_judge(0.0)
    note_vain_ask(pilot(queue, "s2"), queue.id, Resource(queue.name, 1, 4000, 10000), 1.0)
    assert freed() == 0, "it was judged just now"
    let_judge(1.0)
    assert freed() == 1


def test_a_slot_that_idles_on_does_not_have_its_group_judged_without_end() -> None:
    (queue,) = grid("ALPHA")
    note_vain_ask(pilot(queue, "s2"), queue.id, Resource(queue.name, 1, 4000, 10000), 1.0)
    waiting(ramCount=9000)
    IdleSlot.objects.update(since=Now() - timedelta(seconds=3))
    let_judge(1.0)
    before = judged_at()
    assert (freed(), judged_at()) == (0, before)


def test_a_queue_that_drains_frees_what_a_cap_kept_away() -> None:
    (queue,) = grid("ALPHA")
    set_override("prio_mgr", "CAP_RUNNING_USER_JOBS", 1, app="pandaserver", who="ada", why="test")
    submitted(parameters("first", nEvents=20, nEventsPerJob=10))
    run_agents()
    running = [take(queue), take(queue)]
    waiting()
    let_judge()
    assert freed() == 0
    for job in running:
        end(job)
    let_judge()
    assert freed() == 1


def test_a_queue_that_moves_while_a_group_rests_is_not_forgotten() -> None:
    (queue,) = grid("ALPHA")
    without_pilots(queue)
    waiting()
    let_judge()
    assert freed() == 0
    note_vain_ask(pilot(queue, "s2"), queue.id, Resource(queue.name, 1, 4000, 10000), 1.0)
    IdleSlot.objects.all().delete()
    assert freed() == 0, "judged a moment ago"
    let_judge()
    assert freed() == 1


def test_a_look_said_while_a_group_is_judged_stays_said(monkeypatch: pytest.MonkeyPatch) -> None:
    (queue,) = grid("ALPHA")
    waiting(ramCount=9000)
    change(queue, "maxrss", "8500")

    def meanwhile(decided: DecisionRequest) -> TaskDecision[Any]:
        WaitGroup.objects.update(grid_revision=LOOK_NOW)
        return decide_task(decided)

    with monkeypatch.context() as patch:
        patch.setattr(free, "decide_task", meanwhile)
        freed()
    assert WaitGroup.objects.get().grid_revision == LOOK_NOW
    freed()
    assert WaitGroup.objects.get().grid_revision > 0


def test_of_a_large_group_the_next_portion_goes_on_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    grid("ALPHA")
    StorageEndpoint.objects.update(free_gb=50_000)
    Site.objects.update(nucleus=True, state="INACTIVE")
    for number in range(5):
        submitted(parameters(f"large{number}", nEvents=10, nEventsPerJob=10, taskType="prod", prodSourceLabel="managed"))
    run_agents(2, ("refine", "feed", "assign"))
    assert TaskWait.objects.count() == 5
    grid_overrides.set_override(
        LocalOverride(kind="site", name="SITE_ALPHA", attribute="state", value="ACTIVE", reason="repaired", who="ada")
    )
    monkeypatch.setattr(free, "MOST_TASKS", 2)
    left = []
    for pause in (False, False, True, True, True):
        if pause:
            let_judge()
        run_agent("free", looked=True)
        left.append(Task.objects.filter(next_look_at__gt=Now()).count())
    assert left == [3, 3, 1, 0, 0]


def test_a_wait_of_a_task_that_ended_is_forgotten() -> None:
    grid("ALPHA")
    (task,) = waiting(ramCount=9000)
    command(task.id, "kill", "user:ada")
    run_agents(2, ("command", "finish"))
    task.refresh_from_db()
    assert task.ended_at is not None
    Task.objects.update(next_look_at=Now() - timedelta(hours=1))
    TaskWait.objects.update(until=Task.objects.get().next_look_at)
    freed()
    assert not TaskWait.objects.exists()


def test_no_more_are_freed_than_there_is_room_for() -> None:
    (queue,) = grid("ALPHA")
    without_pilots(queue)
    waiting(8)
    assert WaitGroup.objects.count() == 1
    assert TaskWait.objects.count() == 8
    Pilot.objects.filter(queue=queue).delete()
    for number in range(3):
        note_vain_ask(pilot(queue, f"s{number}"), queue.id, Resource(queue.name, 1, 4000, 10000), 1.0)
    let_judge()
    assert freed() == 3


def test_a_group_is_not_judged_again_while_nothing_happens() -> None:
    grid("ALPHA")
    waiting(ramCount=9000)
    freed()
    let_judge()
    before = list(WaitGroup.objects.values_list("judged_at", flat=True))
    freed()
    assert list(WaitGroup.objects.values_list("judged_at", flat=True)) == before


def test_without_the_key_tasks_wait_as_long_as_the_brokerage_says() -> None:
    (queue,) = grid("ALPHA")
    waiting(ramCount=9000)
    set_override("jobbroker", "LOOK_AGAIN", 0, who="ada", why="the letter of the document")
    change(queue, "maxrss", "16000")
    assert freed() == 0


def test_a_task_without_nucleus_goes_on_when_one_is_back() -> None:
    grid("ALPHA")
    StorageEndpoint.objects.update(free_gb=50_000)
    Site.objects.update(nucleus=True, state="INACTIVE")
    task = submitted(parameters(nEvents=10, nEventsPerJob=10, taskType="prod", prodSourceLabel="managed"))
    run_agents(2, ("refine", "feed", "assign", "free"))
    task.refresh_from_db()
    assert (task.status, task.nucleus) == ("assigning", ""), task.error_dialog
    grid_overrides.set_override(
        LocalOverride(kind="site", name="SITE_ALPHA", attribute="state", value="ACTIVE", reason="repaired", who="ada")
    )
    run_agents(1, ("free", "assign"))
    task.refresh_from_db()
    assert (task.status, task.nucleus) == ("ready", "SITE_ALPHA"), task.error_dialog


def test_many_waiting_tasks_of_one_kind_cost_as_many_statements_as_two() -> None:
    (queue,) = grid("ALPHA")
    without_pilots(queue)
    counts = []
    for n in (2, 60):
        waiting(n, name=f"of{n}")
        let_judge()
        Pilot.objects.filter(queue=queue).update(last_seen="2020-01-02T00:00Z")
        with CaptureQueriesContext(connection) as queries:
            freed()
        counts.append(len(queries))
    assert WaitGroup.objects.count() == 1
    assert counts[1] <= counts[0]


def test_those_for_which_there_was_no_room_go_on_as_room_comes() -> None:
    (queue,) = grid("ALPHA")
    tasks = waiting(3, ramCount=9000)
    assert WaitGroup.objects.get().queues == []
    Pilot.objects.filter(queue=queue).delete()
    note_vain_ask(pilot(queue, "s1"), queue.id, Resource(queue.name, 1, 16_000, 10000), 1.0)
    change(queue, "maxrss", "16000")
    assert freed() == 1
    assert WaitGroup.objects.get().queues == ["ALPHA"], "what is left waits for this queue"
    for _ in range(6):
        run_agents(2, ("wake", "generate"))
        while (leased := try_take(queue)) is not None:
            end(leased)
        let_judge()
        run_agents(1, ("free",))
    run_agents(2)
    assert Job.objects.filter(task_id__in=[task.id for task in tasks], status="finished").count() == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("lock", "joined"), [("FOR UPDATE", 1), ("FOR NO KEY UPDATE", 4)])
def test_a_group_that_somebody_keeps_locked_holds_up_no_agent_and_none_of_its_tasks_for_long(lock: str, joined: int) -> None:
    (queue,) = grid("ALPHA")
    waiting(1, "first", ramCount=9000)
    with locked(f"SELECT FROM brokerage_waitgroup {lock}"):
        began = time.monotonic()
        waiting(3, "more", ramCount=9000)
        assert TaskWait.objects.count() == joined
        change(queue, "maxrss", "16000")
        assert freed() == joined, "it is judged all the same"
        assert time.monotonic() - began < 10
    for task in Task.objects.exclude(id__in=TaskWait.objects.values("task_id")):
        assert task.next_look_at is not None and task.next_look_at < timezone.now() + timedelta(seconds=11), "it looks again soon"
        Task.objects.filter(id=task.id).update(next_look_at=Now())
    run_agents()
    assert Job.objects.values("task_id").distinct().count() == 4


def without_nucleus(name: str = "waits", **more: object) -> Task:
    """A production task for which no nucleus has a queue that can run its jobs."""
    task = submitted(parameters(name, nEvents=10, nEventsPerJob=10, taskType="prod", prodSourceLabel="managed", **more))
    run_agents(2, ("refine", "feed", "assign"))
    task.refresh_from_db()
    assert (task.status, task.nucleus) == ("assigning", ""), task.error_dialog
    return task


def nuclei() -> ComputingQueue:
    """A grid of one queue, at a site that may be chosen; the queue has another name than the site."""
    (queue,) = grid("ALPHA")
    StorageEndpoint.objects.update(free_gb=50_000)
    Site.objects.update(nucleus=True)
    return queue


def test_a_pilot_that_asks_in_vain_frees_what_found_no_nucleus_for_want_of_pilots() -> None:
    queue = nuclei()
    without_pilots(queue)
    task = without_nucleus()
    let_judge()
    run_agent("free", looked=True)
    note_vain_ask(pilot(queue, "s2"), queue.id, Resource(queue.name, 1, 4000, 10000), 1.0)
    let_judge()
    run_agents(1, ("free", "assign"))
    task.refresh_from_db()
    assert (task.status, task.nucleus) == ("ready", "SITE_ALPHA"), task.error_dialog


def test_a_look_at_a_queue_finds_what_waits_for_a_nucleus_by_this_queue() -> None:
    queue = nuclei()
    without_pilots(queue)
    without_nucleus()
    without_nucleus("large", ramCount=9000)
    assert look_at_queue(SYSTEM, queue) == 1
