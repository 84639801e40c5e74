"""Caps of users and groups: who has more running than he may has his waiting jobs held back, and his tasks make no more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.gdpconfig import set_override
from brokerage.agents import limit as agent
from brokerage.models import ComputingQueue, Job, JobChange
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import headline, reasons
from tests.api.people import person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import ROUND, end, run_agents, take, try_take
from workqueues.ledger.commands import command
from workqueues.models import File, Task, TaskThrottle

pytestmark = pytest.mark.django_db


def cap(key: str, value: int) -> None:
    set_override("prio_mgr", key, value, app="pandaserver", who="ada", why="slots for others")


@pytest.fixture
def queue() -> ComputingQueue:
    (made,) = grid("ALPHA")
    return made


def task(name: str = "t", jobs: int = 6, **more: Any) -> Task:
    made = submitted(parameters(name, nEvents=10 * jobs, **more))
    run_agents(2, ("refine", "feed", "assign", "generate"))
    return made


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def states() -> list[str]:
    return sorted(Job.objects.values_list("status", flat=True))


def limit() -> None:
    run_agents(1, ["limit"])


def test_with_more_running_than_the_cap_waiting_jobs_are_held_back_and_the_slots_are_for_others(queue: ComputingQueue) -> None:
    held = task()
    leased = [take(queue) for _ in range(3)]
    other = task("o", 2, userName="bob")
    cap("CAP_RUNNING_USER_JOBS", 2)
    limit()
    assert {j.status for j in Job.objects.filter(task_id=other.id)} == {"activated"}
    mine = Job.objects.filter(task_id=held.id)
    assert sorted(mine.values_list("status", "sub_status")) == [("running", "")] * 3 + [("throttled", "user_cap")] * 3
    assert JobChange.objects.filter(new="throttled").first().why == "ada has 3 running jobs, 2 at most"  # type: ignore[union-attr]
    messages = [reason.message for reason in reasons(task_status(held))]
    assert "3 jobs are held back at ALPHA until fewer jobs of the owner run." in messages
    limit()
    assert JobChange.objects.filter(new="throttled").count() == 3, "once is enough"
    assert Job.objects.get(id=take(queue).job_id).task_id == other.id
    end(leased[0])
    limit()
    assert mine.filter(status="throttled").count() == 3, "2 running jobs are not less than 0.9 of 2"
    end(leased[1])
    limit()
    assert mine.filter(status="activated", sub_status="").count() == 3
    end(leased[2])
    for _ in range(10):
        run_agents(1, ROUND)
        if (more := try_take(queue)) is not None:
            end(more)
    run_agents(3, ROUND)
    assert status(held) == "done"


def test_cores_count_too_and_groups_have_caps_of_their_own(queue: ComputingQueue) -> None:
    ComputingQueue.objects.update(corecount=4)
    mine = task(coreCount=4)
    for _ in range(2):
        take(queue)
    cap("CAP_RUNNING_USER_CORES", 7)
    limit()
    (row,) = JobChange.objects.filter(new="throttled").order_by("why").values_list("why", flat=True).distinct()
    assert row == "ada has 8 running cores, 7 at most"
    ours = task("g", coreCount=4, workingGroup="HIGG")
    for _ in range(3):
        take(queue)
    limit()
    assert set(Job.objects.filter(task_id=ours.id).values_list("status", flat=True)) == {"running", "activated"}
    cap("CAP_RUNNING_GROUP_CORES", 11)
    limit()
    assert set(Job.objects.filter(task_id=ours.id).values_list("status", flat=True)) == {"running", "throttled"}
    assert JobChange.objects.latest("id").why == "the group HIGG has 12 running cores, 11 at most"
    assert mine.user_name == ours.user_name, "they count for the group alone"


def test_production_and_merging_are_bound_by_no_cap_of_users(queue: ComputingQueue) -> None:
    task(prodSourceLabel="managed")
    take(queue)
    take(queue)
    cap("CAP_RUNNING_USER_JOBS", 1)
    limit()
    assert "throttled" not in states()


def test_near_the_cap_tasks_make_no_more_jobs_until_there_is_room_again(queue: ComputingQueue) -> None:
    running = task(jobs=5)
    leased = [take(queue) for _ in range(5)]
    cap("CAP_RUNNING_USER_JOBS", 5)
    later = task("later", 3)
    limit()
    assert {status(running), status(later)} == {"throttled"}
    (cause,) = TaskThrottle.objects.filter(task=running)
    assert (cause.cause, cause.why) == ("user_cap", "ada has 5 running jobs, 5 at most")
    assert headline(task_status(running)) == "Throttled: ada has 5 running jobs, 5 at most"
    assert reasons(task_status(running))[0].message == (
        "It makes no new jobs while this holds: ada has 5 running jobs, 5 at most."
    )
    run_agents(names=ROUND)
    assert status(running) == "throttled", "it is not over by time"
    end(leased[0])
    limit()
    assert (status(running), status(later)) == ("running", "running")
    assert not TaskThrottle.objects.exists()


def test_tasks_with_twice_the_cap_waiting_make_no_more_jobs(queue: ComputingQueue) -> None:
    made = task(jobs=8)
    cap("CAP_RUNNING_USER_JOBS", 4)
    limit()
    assert status(made) == "throttled"
    assert headline(task_status(made)) == "Throttled: ada has 8 waiting jobs, 8 at most"
    set_override("prio_mgr", "CAP_RUNNING_USER_JOBS", 100, app="pandaserver", who="ada", why="enough slots")
    limit()
    assert status(made) == "running"


def test_what_is_paused_stays_so_and_what_is_resumed_while_over_the_cap_is_held_back_again(queue: ComputingQueue) -> None:
    made = task()
    leased = [take(queue) for _ in range(3)]
    cap("CAP_RUNNING_USER_JOBS", 2)
    limit()
    command(made.id, "pause", "user:ada")
    run_agents(names=ROUND)
    cap("CAP_RUNNING_USER_JOBS", 100)
    limit()
    assert states() == ["running"] * 3 + ["throttled"] * 3
    cap("CAP_RUNNING_USER_JOBS", 2)
    command(made.id, "resume", "user:ada")
    run_agents(names=ROUND)
    assert states() == ["running"] * 3 + ["throttled"] * 3
    for one in leased:
        end(one)
    run_agents(names=ROUND)
    assert states().count("activated") == 3
    command(made.id, "kill", "user:ada")
    run_agents(3, ROUND)
    assert status(made) == "aborted"


def test_page_and_rest_tell_the_user_what_holds_her_task_and_her_jobs(queue: ComputingQueue) -> None:
    made = task()
    for _ in range(3):
        take(queue)
    cap("CAP_RUNNING_USER_JOBS", 2)
    limit()
    why = "ada has 3 running jobs, 2 at most"
    told = person("ada", ("demo", "submitter")).get(f"tasks/{made.id}/waiting/").json()
    assert told["headline"] == f"Throttled: {why}"
    assert told["throttles"] == [{"cause": "user_cap", "why": why, "until": None}]
    assert [reason["message"] for reason in told["reasons"][:2]] == [
        f"It makes no new jobs while this holds: {why}.",
        "3 jobs are held back at ALPHA until fewer jobs of the owner run.",
    ]
    client = Client()
    client.force_login(ensure_user("ada", roles=[("demo", "submitter")]))
    assert f"Throttled: {why}" in client.get(f"/tasks/{made.id}/").content.decode()
    assert "held back at ALPHA" in client.get(f"/tasks/{made.id}/brokerage/").content.decode()
    held = Job.objects.filter(status="throttled").earliest("id")
    assert "user_cap" in client.get(f"/jobs/{held.id}/").content.decode()


def test_a_job_that_is_held_back_for_seven_days_is_closed_and_its_input_waits_for_another(queue: ComputingQueue) -> None:
    made = task()
    for _ in range(3):
        take(queue)
    cap("CAP_RUNNING_USER_JOBS", 2)
    limit()
    held = Job.objects.filter(status="throttled")
    held.update(status_since=TransactionNow() - timedelta(days=6.9))
    run_agents(1, ["reap"])
    assert held.count() == 3
    held.update(status_since=TransactionNow() - timedelta(days=7.1))
    run_agents(1, ["reap"])
    assert sorted(Job.objects.filter(task_id=made.id).values_list("status", flat=True)) == ["closed"] * 3 + ["running"] * 3
    assert File.objects.filter(task_id=made.id, type="pseudo_input", status="ready", failed_attempt=0).count() == 3


def test_while_somebody_is_held_back_the_room_that_ends_make_is_seen_soon(
    queue: ComputingQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[tuple[str, float]] = []
    monkeypatch.setattr(agent, "look_later", lambda *wish: later.append(wish))
    task()
    leased = [take(queue) for _ in range(3)]
    limit()
    assert later == [], "without a cap nobody waits for room"
    cap("CAP_RUNNING_USER_JOBS", 2)
    for _ in range(2):
        limit()
    assert later == [("limit", 5.0)] * 2
    for each in leased:
        end(each)
    limit()
    limit()
    assert "throttled" not in states()
    later.clear()
    limit()
    assert later == []
