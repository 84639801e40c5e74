"""Jobs of a task with disableReassign stay where they are, whatever the time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from broker_site.foundation.agency.run import run_agent
from brokerage.models import ComputingQueue, Job, Pilot
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, take
from workqueues.models import Task

pytestmark = pytest.mark.django_db
YEAR = timedelta(days=365)


@pytest.fixture
def alpha() -> ComputingQueue:
    return grid("ALPHA")[0]


def work(name: str = "t1", **more: Any) -> Task:
    """A task of four jobs that wait."""
    task = submitted(parameters(name, **more))
    run_agents(names=("refine", "feed", "assign", "generate"))
    task.refresh_from_db()
    return task


def age(**which: Any) -> None:
    """The jobs have stood as they do for a year, and no pilot was heard of."""
    Job.objects.filter(**which).update(status_since=Now() - YEAR, last_seen=Now() - YEAR)
    Job.objects.filter(lease_holder__isnull=False, **which).update(lease_until=Now() - YEAR)
    Pilot.objects.update(last_seen=Now() - YEAR)


def test_the_parameter_is_taken_and_stands_in_the_split_rule(alpha: ComputingQueue) -> None:
    assert "DI=1" in work(disableReassign=True).split_rule
    assert "DI" not in work("other", disableReassign=False).split_rule


def test_no_limit_ends_jobs_of_a_task_that_keeps_them_and_those_of_others_end(alpha: ComputingQueue) -> None:
    kept, other = work(disableReassign=True), work("other")
    leased = [take(alpha) for _ in range(5)]
    age()
    ComputingQueue.objects.update(status="offline", status_since=Now() - YEAR)
    run_agents(1, ("reap", "watch"))
    states = dict(Job.objects.filter(task_id=kept.id).values_list("id", "status"))
    assert sorted(states.values()) == ["activated"] * (4 - n_of(kept, leased)) + ["running"] * n_of(kept, leased)
    assert not Job.objects.filter(task_id=other.id, ended_at=None).exists()


def n_of(task: Task, leased: list[Any]) -> int:
    return sum(lease.task_id == task.id for lease in leased)


def test_a_job_that_is_to_be_killed_ends_with_its_lease_all_the_same(alpha: ComputingQueue) -> None:
    work(disableReassign=True)
    job = take(alpha).job_id
    age(id=job)
    assert run_agent("reap", looked=True) == 0
    Job.objects.filter(id=job).update(kill_requested=True, kill_outcome="cancelled")
    assert run_agent("reap", looked=True) == 1
    assert Job.objects.get(id=job).status == "failed"


def test_once_its_task_has_ended_nothing_is_kept(alpha: ComputingQueue) -> None:
    """A job never outlives its task; were there one, the limits would end it."""
    task = work(disableReassign=True)
    age()
    Task.objects.filter(id=task.id).update(split_rule="")
    assert run_agent("reap", looked=True) == 4
