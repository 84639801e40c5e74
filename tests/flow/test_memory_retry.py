"""Jobs that run out of memory: their next try gets more, and where many do the whole task asks for more."""

from __future__ import annotations

from typing import Any

import pytest

from broker_site.foundation.access.models import Audit
from brokerage.models import ComputingQueue, Job, JobSpec
from brokerage.rules.dispatch.settlement import Report
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import end, run_agents, take
from workqueues.models import File, Task

pytestmark = pytest.mark.django_db

PRODUCTION = {"prodSourceLabel": "managed", "nFilesPerJob": 1, "maxAttempt": 10}


def out_of_memory(used_mb: object = 1500) -> Report:
    return Report("failed", error_code="PAYLOAD_MEMORY", error_message="used too much", metrics={"max_rss_mb": used_mb})


def task_of(n: int, **more: Any) -> tuple[Task, ComputingQueue]:
    (queue,) = grid("ALPHA")
    ComputingQueue.objects.update(maxrss=8000, minrss=0)
    catalogue_dataset("in.data", n)
    task = submitted(reading("t", "in.data", **{**PRODUCTION, "ramCount": 1000, "ramUnit": "MB", **more}))
    run_agents()
    return task, queue


def memory_of_waiting() -> list[int]:
    """What the jobs that wait ask pilots for, MB."""
    waiting = Job.objects.filter(status="activated").values("id")
    return list(JobSpec.objects.filter(job__in=waiting).order_by("job_id").values_list("ram_mb", flat=True))


def test_the_next_try_gets_the_step_above_what_was_used(django_capture_on_commit_callbacks: Any) -> None:
    task, queue = task_of(1)
    assert memory_of_waiting() == [900]
    for used, asked in ((1500, 1800), (1700, 2700), (5000, 5400)):
        with django_capture_on_commit_callbacks(execute=True):
            assert end(take(queue), out_of_memory(used)) == "failed"
        run_agents()
        assert memory_of_waiting() == [asked]
    assert File.objects.get(type="input").ram_count == 6000
    task.refresh_from_db()
    assert task.ram_count == 1000, "few jobs say nothing of the task"


def test_other_failures_and_jobs_at_the_last_step_change_nothing() -> None:
    _, queue = task_of(1, ramCount=8000)
    end(take(queue), Report("failed", error_code="PAYLOAD_EXIT", error_message="no", metrics={"max_rss_mb": 7999}))
    run_agents()
    end(take(queue), out_of_memory(7999))
    run_agents()
    assert File.objects.get(type="input").ram_count == 0
    assert memory_of_waiting() == [7200]


@pytest.mark.parametrize("used", [None, "much", -1, 1e300, 0])
def test_what_was_not_measured_counts_as_nothing(used: object) -> None:
    _, queue = task_of(1)
    end(take(queue), out_of_memory(used))
    assert File.objects.get(type="input").ram_count == 2000


def test_the_whole_task_asks_for_more_once_three_of_ten_jobs_ran_out_of_memory(django_capture_on_commit_callbacks: Any) -> None:
    task, queue = task_of(14)
    for n in range(10):
        with django_capture_on_commit_callbacks(execute=True):
            end(take(queue), out_of_memory() if n >= 7 else None)
    task.refresh_from_db()
    assert (task.ram_count, task.resource_type) == (2000, "SCORE")
    row = Audit.objects.get(act="task.memory")
    assert (row.object, row.reason) == (f"task {task.id}", "3 of the latest 10 jobs ran out of memory")
    assert (row.before, row.after) == ({"ram_count": 1000}, {"ram_count": 2000})
    with django_capture_on_commit_callbacks(execute=True):
        end(take(queue), out_of_memory())
    task.refresh_from_db()
    assert task.ram_count == 2000, "this job still ran with 1000 MB"
