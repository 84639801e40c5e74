"""Tasks that are nearly done go first: they and their jobs get a high priority, and the express share where there is one."""

from __future__ import annotations

import pytest

from broker_site.foundation.access.models import Audit
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, Job, TaskQueue
from brokerage.queries.nearly_done import nearly_done as tasks_nearly_done
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import GlobalShare, Task

pytestmark = pytest.mark.django_db

PRODUCTION = {"prodSourceLabel": "managed"}


@pytest.fixture
def queue() -> ComputingQueue:
    (made,) = grid("ALPHA")
    GlobalShare.objects.bulk_create(
        GlobalShare(name=name, vo="demo", value=50, prod_source_label=label)
        for name, label in (("Work", ".*"), ("Express", "none"))
    )
    return made


def nearly_done(queue: ComputingQueue, **more: object) -> Task:
    """A task of 20 jobs, of which all but the last has finished."""
    catalogue_dataset("in.data", 20)
    task = submitted(reading("t", "in.data", **{**PRODUCTION, "nFilesPerJob": 1, **more}))
    for _ in range(40):
        run_agents(1, ("refine", "feed", "assign", "generate", "command", "wake", "free", "share"))
        run_jobs_but_the_last(queue)
        if Job.objects.filter(status="finished").count() == 19:
            break
    task.refresh_from_db()
    return task


def run_jobs_but_the_last(queue: ComputingQueue) -> None:
    while Job.objects.filter(status="activated").exists() and Job.objects.filter(status="finished").count() < 19:
        end(take(queue))


def test_a_task_that_is_nearly_done_moves_to_the_express_share_with_its_waiting_jobs(queue: ComputingQueue) -> None:
    task = nearly_done(queue)
    (job,) = Job.objects.filter(status="activated")
    assert (task.gshare, job.task_queue.gshare) == ("Work", "Work")
    old = TaskQueue.objects.get(id=job.task_queue_id)
    run_agents(1, ["boost"])
    task.refresh_from_db()
    job.refresh_from_db()
    assert (task.current_priority, task.gshare) == (900, "Express")
    assert (job.priority, job.ready_priority, job.task_queue.gshare) == (900, -900, "Express")
    same = ("computing_queue_id", "core_count", "ram_mb", "walltime_s", "resource_type", "work_queue_id", "vo")
    assert [getattr(job.task_queue, name) for name in same] == [getattr(old, name) for name in same]
    row = Audit.objects.get(act="task.boost")
    assert (row.object, row.reason) == (f"task {task.id}", "95.0 % of its files are through, jobs left: about 1")
    run_agents(1, ["boost"])
    assert Audit.objects.filter(act="task.boost").count() == 1, "once is enough"
    assert run_jobs(queue) == 1
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "done"


def test_without_such_a_share_only_the_priority_rises_and_a_higher_one_stays(queue: ComputingQueue) -> None:
    set_override("task_watcher", "EXPRESS_SHARE", "Nowhere", who="test", why="no such leaf")
    task = nearly_done(queue, taskPriority=950)
    run_agents(1, ["boost"])
    task.refresh_from_db()
    assert (task.current_priority, task.gshare) == (950, "Work")
    Task.objects.update(current_priority=500)
    run_agents(1, ["boost"])
    task.refresh_from_db()
    assert (task.current_priority, task.gshare) == (900, "Work")


def test_a_task_of_a_user_with_few_slots_moves_to_the_express_share_of_analysis(queue: ComputingQueue) -> None:
    GlobalShare.objects.create(name="Express Analysis", vo="demo", value=10, prod_source_label="none")
    task = nearly_done(queue, prodSourceLabel="user")
    (job,) = Job.objects.filter(status="activated")
    assert (task.gshare, job.task_queue.gshare) == ("Work", "Work")
    run_agents(1, ["boost"])
    task.refresh_from_db()
    job.refresh_from_db()
    assert (task.current_priority, task.gshare) == (1000, "Express Analysis")
    assert (job.priority, job.task_queue.gshare) == (1000, "Express Analysis")
    assert Audit.objects.get(act="task.boost").reason == "95.0 % of its files are through, jobs left: about 1"
    run_agents(1, ["boost"])
    assert Audit.objects.filter(act="task.boost").count() == 1, "once is enough"


@pytest.mark.parametrize(
    ("key", "value"), [("USER_USAGE_THRESHOLD_B", 0), ("PROGRESS_TO_BOOST_B", 96), ("MAX_REM_JOBS_TO_BOOST_B", 0)]
)
def test_of_users_with_more_slots_more_must_be_done_or_nothing_is_boosted(queue: ComputingQueue, key: str, value: int) -> None:
    set_override("analy_eval", "USER_USAGE_THRESHOLD_A", 0, app="pandaserver", who="test", why="one job is more")
    task = nearly_done(queue, prodSourceLabel="user")
    take(queue)
    set_override("analy_eval", key, value, app="pandaserver", who="test", why="test")
    run_agents(1, ["boost"])
    task.refresh_from_db()
    assert (task.current_priority, task.gshare) == (500, "Work")
    set_override("analy_eval", key, {"USER_USAGE_THRESHOLD_B": 1}.get(key, 95), app="pandaserver", who="test", why="test")
    run_agents(1, ["boost"])
    task.refresh_from_db()
    assert (task.current_priority, task.gshare) == (1000, "Work"), "there is no express share for analysis"


@pytest.mark.parametrize("case", ["claimed", "too many jobs left", "parent"])
def test_these_are_left_as_they_are(queue: ComputingQueue, case: str) -> None:
    task = nearly_done(queue, prodSourceLabel="managed")
    if case == "claimed":
        Task.objects.update(locked_by="run", locked_time="2100-01-01T00:00:00Z")
    elif case == "too many jobs left":
        set_override("task_watcher", "BOOST_JOBS", 1, who="test", why="none is few enough")
    elif case == "parent":
        parent = submitted(reading("p", "in.data", **PRODUCTION))
        Task.objects.filter(id=task.id).update(parent_tid=parent.id)
    run_agents(1, ["boost"])
    before = (task.current_priority, task.gshare)
    task.refresh_from_db()
    assert (task.current_priority, task.gshare) == before


def test_seeds_and_merge_jobs_say_nothing_of_how_many_jobs_are_left(queue: ComputingQueue) -> None:
    task = submitted(parameters("t", **{**PRODUCTION, "nEvents": 40, "nEventsPerJob": 10, "mergeOutput": True}))
    run_agents(3)
    run_jobs(queue)
    run_agents(1)
    assert Job.objects.filter(task_id=task.id, kind=JobKind.MERGE).exists()
    (found,) = tasks_nearly_done(["managed"], 0.0, 900, "Express")
    assert (found.jobs, found.files) == (4, 4), "a job has a number and a seed, which is no further input"


def test_a_retry_gives_the_task_its_own_priority_and_share_back(queue: ComputingQueue) -> None:
    task = nearly_done(queue, maxAttempt=1, taskPriority=400)
    run_agents(1, ["boost"])
    run_jobs(queue, BAD)
    run_agents(3)
    task.refresh_from_db()
    assert (task.status, task.current_priority, task.gshare) == ("finished", 900, "Express")
    command(task.id, "retry", "user:ada")
    run_agents(1, ["command", "assign", "generate"])
    task.refresh_from_db()
    assert (task.status, task.current_priority, task.gshare) == ("running", 400, "Work")
    assert Job.objects.get(status="activated").task_queue.gshare == "Work"
