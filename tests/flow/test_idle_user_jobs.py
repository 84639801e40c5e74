"""Jobs of users that wait at a queue where nothing moves are brokered anew after ANALY_TIMEOUT."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db.models import F

from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, Job, JobChange, Pilot
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import end, run_agents, take
from workqueues.models import File, Task

pytestmark = pytest.mark.django_db

MAKING = ("refine", "feed", "assign", "generate", "wake")


def waiting(hours: float = 13, **more: Any) -> tuple[Task, ComputingQueue]:
    """A task of four jobs that wait at a queue for so long."""
    (queue,) = grid("ALPHA")
    task = submitted(parameters("t", **more))
    run_agents(2, MAKING)
    age(hours)
    return task, queue


def age(hours: float) -> None:
    Job.objects.filter(status="activated").update(status_since=F("status_since") - timedelta(hours=hours))


def watch() -> Counter[str]:
    """What is waiting where, and how jobs ended, after the agent came."""
    run_agents(1, ["watch"])
    return Counter(Job.objects.values_list("status", flat=True))


def test_after_twelve_hours_without_any_that_got_on_they_go_elsewhere() -> None:
    task, _ = waiting(11.9)
    assert watch() == {"activated": 4}
    age(0.2)
    (beta,) = grid("BETA")
    pilot(beta)
    assert watch() == {"closed": 4}
    change = JobChange.objects.filter(new="closed").first()
    assert change is not None
    assert change.why == "they waited at ALPHA for 12.1 h, and no job of the task got on there"
    assert set(Job.objects.values_list("sub_status", flat=True)) == {"toreassign"}
    run_agents(2, MAKING)
    assert set(Job.objects.filter(ended_at=None).values_list("computing_queue__name", flat=True)) == {"BETA"}
    assert File.objects.filter(task_id=task.id, failed_attempt__gt=0).count() == 0, "it is no failure"


@pytest.mark.parametrize("how", ["runs", "finished"])
def test_they_stay_where_others_of_the_task_got_on_lately(how: str) -> None:
    _, alpha = waiting()
    leased = take(alpha)
    if how == "finished":
        end(leased)
    assert watch()["closed"] == 0
    Job.objects.filter(id=leased.job_id).update(status_since=TransactionNow() - timedelta(hours=4))
    if how == "finished":
        Job.objects.filter(id=leased.job_id).update(ended_at=TransactionNow() - timedelta(hours=4))
    assert watch()["closed"] == 3


def test_a_group_may_have_a_time_of_its_own_and_none_is_one_too() -> None:
    set_override("rebroker", "ANALY_TIMEOUT_HIGG", "4h", app="pandaserver", who="ada", why="test")
    waiting(5, workingGroup="HIGG")
    assert watch() == {"closed": 4}


def test_at_a_queue_in_test_they_do_not_wait_so_long() -> None:
    waiting(3.5)
    ComputingQueue.objects.update(status="test")
    assert watch() == {"closed": 4}


@pytest.mark.parametrize("case", ["production", "named", "suspended"])
def test_these_stay(case: str) -> None:
    more: dict[str, Any] = {"production": {"prodSourceLabel": "managed"}, "named": {"site": "ALPHA"}, "suspended": {}}[case]
    waiting(**more)
    if case == "suspended":
        ComputingQueue.objects.update(catchall="disableReassign")
    assert watch() == {"activated": 4}
    assert Pilot.objects.exists()
