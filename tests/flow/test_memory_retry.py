"""Jobs that run out of memory: their next try gets more, and where many do the whole task asks for more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from broker_site.foundation.access.models import Audit
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.waits import grid_changed
from brokerage.models import ComputingQueue, Job, JobSpec
from brokerage.rules.dispatch.settlement import Report
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, run_agents, take, try_take
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


def failed_in_two_ways(**more: Any) -> tuple[Task, ComputingQueue]:
    """A task of six files, two a job: a job ran out of memory, another failed with something else, and the third is done."""
    task, queue = task_of(6, nFilesPerJob=2, **more)
    for report in (out_of_memory(), BAD, None):
        end(take(queue), report)
    return task, queue


def test_files_that_ran_out_of_memory_share_no_job_with_others() -> None:
    _, queue = failed_in_two_ways()
    run_agents()
    assert memory_of_waiting() == [1800, 900]
    for job in Job.objects.filter(status="activated"):
        files = File.objects.filter(job_id=job.id, type="input").values_list("ram_count", flat=True)
        assert len(files) == 2
        assert len(set(files)) == 1, f"{queue}: all of a job need the same"


def test_files_for_which_no_slot_is_large_enough_are_in_no_ones_way() -> None:
    task, queue = failed_in_two_ways()
    ComputingQueue.objects.update(maxrss=1000)
    run_agents()
    assert memory_of_waiting() == [900]
    end(take(queue))
    run_agents()
    task.refresh_from_db()
    assert task.status == "pending"
    assert "a job needs 1800 MB" in task.error_dialog
    ComputingQueue.objects.update(maxrss=8000)
    Task.objects.update(next_look_at=task.creation_date - timedelta(hours=1))
    grid_changed()
    run_agents(3)
    assert memory_of_waiting() == [1800]


def test_the_last_hungry_file_waits_for_no_other() -> None:
    _, queue = task_of(3, nFilesPerJob=2)
    for _ in range(2):
        end(take(queue), out_of_memory())
        run_agents()
    File.objects.filter(id=File.objects.filter(type="input").latest("id").id).update(ram_count=4000)
    run_agents()
    for _ in range(3):
        if (leased := try_take(queue)) is not None:
            end(leased)
        run_agents()
    assert set(File.objects.filter(type="input").values_list("status", flat=True)) == {"finished"}


def test_how_many_jobs_must_have_ended_is_configured(django_capture_on_commit_callbacks: Any) -> None:
    set_override("jobbroker", "MEMORY_RAISE_MIN_JOBS", "2", who="ada", why="test")
    task, queue = task_of(3)
    for report in (None, out_of_memory()):
        with django_capture_on_commit_callbacks(execute=True):
            end(take(queue), report)
    task.refresh_from_db()
    assert task.ram_count == 2000
