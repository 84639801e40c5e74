"""Tasks that end before all of their input is processed: at their goal, and after a time as exhausted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from brokerage.models import ComputingQueue, Job
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import Dataset, Task, TaskChange

pytestmark = pytest.mark.django_db


def ten_files(**more: Any) -> tuple[Task, ComputingQueue]:
    """A task of ten jobs of a file each."""
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 10)
    task = submitted(reading("t", "in.data", **{"nFilesPerJob": 1, "maxAttempt": 9, **more}))
    run_agents()
    return task, queue


def run_nine(queue: ComputingQueue) -> None:
    """One job fails, nine finish."""
    end(take(queue), BAD)
    run_jobs(queue)


@pytest.mark.parametrize("wish", [{"goal": 90}, {"termCondition": "90% of files"}])
def test_a_task_ends_once_its_goal_is_reached(wish: dict[str, Any]) -> None:
    task, queue = ten_files(**wish)
    run_nine(queue)
    run_agents(names=["achieve"])
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "finished"
    assert "9 of 10 files were processed" in task.error_dialog
    assert Job.objects.count() == 10, "the one that failed is not tried again"
    change = TaskChange.objects.get(task_id=task.id, new="finishing")
    assert (change.who, change.why) == ("agent:achieve", "soft finish: its goal of 90 % is reached")


@pytest.mark.parametrize("wish", [{"goal": 95}, {"goal": 90, "disableAutoFinish": True}, {}])
def test_other_tasks_go_on(wish: dict[str, Any]) -> None:
    task, queue = ten_files(**wish)
    run_nine(queue)
    run_agents()
    task.refresh_from_db()
    assert task.status == "running"
    assert Job.objects.count() == 11


def test_not_while_a_file_was_not_tried() -> None:
    task, queue = ten_files(goal=50)
    for _ in range(9):
        end(take(queue))
    run_agents(names=["achieve"])
    task.refresh_from_db()
    assert task.status == "finishing", "the last one is with a job"
    leased = take(queue)
    run_agents()
    task.refresh_from_db()
    assert task.status == "finishing"
    end(leased)
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


@pytest.mark.parametrize(("finished_by", "status"), [("", "failed"), ("user:ada", "finished")])
def test_who_finishes_a_task_below_its_goal_takes_what_it_has(finished_by: str, status: str) -> None:
    task, queue = ten_files(goal=95, failWhenGoalUnreached=True, maxAttempt=1)
    end(take(queue), BAD)
    for _ in range(8):
        end(take(queue))
    if finished_by:
        command(task.id, "finish", finished_by)
        run_agents()
    else:
        run_jobs(queue)
    run_agents(3)
    task.refresh_from_db()
    assert task.status == status
    assert task.error_dialog.startswith(f"{8 if finished_by else 9} of 10 files were processed")


def exhausted(**more: Any) -> Task:
    """A production task with nine of ten files processed."""
    task, queue = ten_files(prodSourceLabel="managed", useExhausted=True, **more | {"maxAttempt": 1})
    run_nine(queue)
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "exhausted"
    return task


def later(days: float) -> None:
    Task.objects.update(status_since=F("status_since") - timedelta(days=days))
    run_agents()


def test_an_exhausted_task_that_nobody_retries_ends_by_its_files() -> None:
    task = exhausted()
    later(9.9)
    task.refresh_from_db()
    assert task.status == "exhausted"
    later(0.2)
    task.refresh_from_db()
    assert task.status == "finished"
    moves = list(TaskChange.objects.filter(task_id=task.id).order_by("id").values_list("new", flat=True))
    assert moves[-2:] == ["passed", "finished"]


@pytest.mark.parametrize("again", ["retry", "incexec"])
def test_an_exhausted_task_that_is_run_again_writes_to_its_datasets_as_before(again: str) -> None:
    task = exhausted()
    command(task.id, again, "user:ada")
    run_agents(4)
    task.refresh_from_db()
    assert (task.status, task.agent_faults) == ("running", 0), task.error_dialog
    assert run_jobs(ComputingQueue.objects.get()) == 1
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "done"
    assert set(Dataset.objects.filter(task=task).values_list("status", flat=True)) == {"done"}


def test_one_that_nobody_looked_at_fails_below_its_goal_where_it_wants_that() -> None:
    task = exhausted(goal=95, failWhenGoalUnreached=True)
    later(10.1)
    task.refresh_from_db()
    assert task.status == "failed"


def test_not_one_that_wants_no_such_end() -> None:
    task = exhausted(disableAutoFinish=True)
    later(400)
    task.refresh_from_db()
    assert task.status == "exhausted"
