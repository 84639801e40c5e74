"""Jobs that none of the idle slots of a queue fits keep no room there from jobs that one does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, IdleSlot, Job, MisfitQueue
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from tests.flow.test_idle_slots import ask_in_vain
from workqueues.models import Task

pytestmark = pytest.mark.django_db

MAKING = ("refine", "feed", "assign", "slots", "generate")


def made(task: Task, rounds: int = 6) -> int:
    """Jobs of the task that wait after so many rounds of the agents."""
    run_agents(rounds, MAKING)
    return Job.objects.filter(task_id=task.id, status="activated").count()


def of_many_jobs(name: str, **more: Any) -> Task:
    return submitted(parameters(name, nEvents=300, nEventsPerJob=1, **more))


def full_of_misfits(**misfit: Any) -> tuple[ComputingQueue, Task, int]:
    """A queue with three slots that idle and as many waiting jobs as it may have, none of which fits; their task and number."""
    (queue,) = grid("ALPHA")
    for slot in ("s1", "s2", "s3"):
        ask_in_vain(queue, slot, memory_mb=2000)
    task = of_many_jobs("misfits", **misfit)
    n = made(task)
    assert n == 3
    return queue, task, n


@pytest.mark.parametrize("misfit", [{"tags": ["GPU"]}, {"gridCEs": ["ce2"]}, {"ramCount": 2500, "ramUnit": "MB"}])
def test_a_job_that_fits_an_idle_slot_is_made_though_others_wait_that_fit_none(misfit: dict[str, Any]) -> None:
    _, misfits, n = full_of_misfits(**misfit)
    assert made(of_many_jobs("plain")) >= 3
    assert made(misfits) == n


@pytest.mark.parametrize("misfit", [{"tags": ["GPU"]}, {"gridCEs": ["ce2"]}, {"ramCount": 2500, "ramUnit": "MB"}])
def test_jobs_that_fit_no_idle_slot_are_made_no_further(misfit: dict[str, Any]) -> None:
    _, _, n = full_of_misfits(**misfit)
    again = of_many_jobs("again", **misfit)
    assert made(again) == 0
    run_agents(4, MAKING)
    assert Job.objects.filter(status="activated").count() == n


def test_jobs_that_fit_are_made_as_many_as_may_wait_for_the_slots_and_no_more() -> None:
    full_of_misfits(tags=["GPU"])
    plain = of_many_jobs("plain")
    n = made(plain)
    assert n == 3
    assert made(plain, 10) == n


def test_a_slot_that_has_asked_only_a_moment_may_not_have_seen_the_jobs_that_wait() -> None:
    (queue,) = grid("ALPHA")
    ask_in_vain(queue, "s1", idle_s=1.0)
    n = made(of_many_jobs("misfits", tags=["GPU"]))
    assert n > 0
    assert made(of_many_jobs("plain")) == 0


def test_misfits_of_its_own_share_keep_a_task_neither_from_the_criteria_nor_from_the_throttler() -> None:
    """There are as many as the criteria and the throttler let wait where hardly anything runs."""
    full_of_misfits(tags=["GPU"])
    set_override("jobbroker", "NQUEUELIMITSITE", 3, who="test", why="no more than slots")
    plain = of_many_jobs("plain")
    assert made(plain) == 3
    assert Task.objects.get(id=plain.id).status == "running"


def test_what_was_found_is_forgotten_once_the_slots_idle_no_longer() -> None:
    full_of_misfits(tags=["GPU"])
    IdleSlot.objects.all().delete()
    MisfitQueue.objects.update(seen_at=Now() - timedelta(hours=1))
    assert made(of_many_jobs("plain")) == 0
    assert not MisfitQueue.objects.exists()
