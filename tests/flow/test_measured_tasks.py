"""Tasks without scouts are measured by their first jobs too, and all are measured again when many have finished."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from broker_site.foundation.access.models import Audit
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, Job, JobResult, JobSpec
from brokerage.rules.dispatch.settlement import Report
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, good, run_agents, take
from workqueues.models import Task

pytestmark = pytest.mark.django_db


def running(jobs: int, **more: Any) -> tuple[Task, ComputingQueue]:
    (queue,) = grid("ALPHA")
    task = submitted(parameters("t", nEvents=10 * jobs, ramCount=2000, **more))
    run_agents()
    return task, queue


def finish(queue: ComputingQueue, n: int, used_mb: float) -> None:
    """So many jobs finish which ran for an hour and used so much memory."""
    for _ in range(n):
        leased = take(queue)
        end(leased, Report("finished", good(leased.job_id).outputs, metrics={"max_pss_mb": used_mb, "cpu_s": 3000.0}))
    now = timezone.now()
    JobResult.objects.update(end_time=now, start_time=now - timedelta(hours=1))


def needs(task: Task) -> tuple[int | None, int]:
    task.refresh_from_db()
    return task.ram_count, task.n_measured


def test_a_task_without_scouts_is_measured_by_its_first_five_jobs_and_later_ones_get_that() -> None:
    task, queue = running(60)
    finish(queue, 4, 1200.0)
    run_agents(1, ["assess"])
    assert needs(task) == (2000, 0), "four jobs may be exceptions"
    finish(queue, 1, 1300.0)
    run_agents(1, ["assess"])
    assert needs(task) == (1300, 5)
    assert task.cpu_time == pytest.approx((3600 - 600) * 10 * 0.9 / 10 * 1.5, rel=0.01)
    assert task.assessment_time is not None
    row = Audit.objects.get(act="task.measured")
    assert row.before and row.after
    assert (row.object, row.before["ram_count"], row.after["ram_count"]) == (f"task {task.id}", 2000, 1300)
    before = set(Job.objects.values_list("id", flat=True))
    run_agents(3)
    made = JobSpec.objects.exclude(job_id__in=before)
    assert {spec.ram_mb for spec in made} == {1200}, "1170 MB, by steps of a hundred"
    finish(queue, 1, 1900.0)
    run_agents(1, ["assess"])
    assert needs(task) == (1300, 5), "once is enough"


def test_it_is_measured_again_when_many_have_finished_and_memory_is_not_lowered_then() -> None:
    set_override("dbproxy", "MEASURE_AGAIN", 8, who="ada", why="test")
    task, queue = running(12)
    finish(queue, 5, 1300.0)
    run_agents(1, ["assess"])
    finish(queue, 2, 1900.0)
    run_agents(1, ["assess"])
    assert needs(task) == (1300, 5)
    finish(queue, 1, 900.0)
    run_agents(1, ["assess"])
    assert needs(task) == (1900, 8)


def test_what_was_raised_for_jobs_that_ran_out_of_memory_stays() -> None:
    task, queue = running(12)
    Task.objects.update(ram_count=4000)
    finish(queue, 5, 1300.0)
    run_agents(1, ["assess"])
    assert needs(task) == (4000, 5)


def test_a_task_that_was_scouted_is_measured_again_by_all_its_jobs() -> None:
    set_override("dbproxy", "MEASURE_AGAIN", 15, who="ada", why="test")
    task, queue = running(100, skipScout=None)
    finish(queue, 10, 1300.0)
    run_agents(3)
    assert needs(task) == (1300, 10)
    finish(queue, 5, 2500.0)
    run_agents(1, ["assess"])
    assert needs(task) == (2500, 15)


@pytest.mark.parametrize("case", ["off", "claimed"])
def test_these_are_left_as_they_are(case: str) -> None:
    task, queue = running(12)
    if case == "off":
        set_override("dbproxy", "MEASURE_FROM", 0, who="ada", why="only scouts measure")
    else:
        Task.objects.update(locked_by="run", locked_time="2100-01-01T00:00:00Z")
    finish(queue, 5, 1300.0)
    run_agents(1, ["assess"])
    assert needs(task) == (2000, 0)
