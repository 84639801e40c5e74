"""Kill, finish and retry: accepted at once, carried out when no job is in the way."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.agency.look import Looks
from broker_site.foundation.kernel.machine import NotAllowed
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.models import ComputingQueue, Job
from brokerage.rules.dispatch.settlement import Report
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import Dataset, File, FileChange, Task

pytestmark = pytest.mark.django_db

KILLED = Report("failed", killed=True, error_code="KILLED")


def running_task(files: int = 4, **more: Any) -> tuple[Task, ComputingQueue]:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", files)
    task = submitted(reading("t", "in.data", **more))
    run_agents()
    return task, queue


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def test_kill_ends_waiting_jobs_at_once_and_asks_the_pilot_of_a_running_one() -> None:
    task, queue = running_task()
    held = take(queue)
    command(task.id, "kill", "user:ada", "wrong input")
    assert status(task) == "aborting"
    run_agents()
    assert sorted(Job.objects.values_list("status", flat=True)) == ["cancelled", "running"]
    (renewed,) = beat([SignOfLife(held.job_id, held.epoch)])
    assert renewed is not None
    assert renewed.kill
    assert end(held, KILLED) == "cancelled"
    run_agents()
    assert status(task) == "aborted"
    assert set(File.objects.filter(type="input").values_list("status", "attempt_nr")) == {("ready", 1)}
    assert Dataset.objects.get(type="output").status == "done"


def test_finish_lets_running_jobs_end_when_soft_and_gives_up_what_was_not_used() -> None:
    task, queue = running_task()
    held = take(queue)
    command(task.id, "finish", "user:ada", "soft finish")
    run_agents()
    assert status(task) == "finishing"
    end(held)
    run_agents()
    assert status(task) == "finished"
    assert sorted(File.objects.filter(type="input").values_list("status", flat=True)) == ["failed"] * 2 + ["finished"] * 2


@pytest.mark.parametrize(("name", "comment", "accepted"), [("kill", "", "aborting"), ("finish", "soft", "finishing")])
def test_a_job_that_finishes_after_a_command_wakes_the_agent_that_waits_for_it(
    name: str, comment: str, accepted: str, django_capture_on_commit_callbacks: Any
) -> None:
    """Not asked to die, or before its pilot heard of it: the command need not wait for the period of its agent."""
    task, queue = running_task()
    before, after = take(queue), take(queue)
    with django_capture_on_commit_callbacks() as hooks:
        end(before)
    assert "command" not in told(hooks)
    command(task.id, name, "user:ada", comment)
    run_agents()
    assert status(task) == accepted
    with django_capture_on_commit_callbacks() as hooks:
        end(after)
    assert "command" in told(hooks)


def told(hooks: list[Any]) -> set[str]:
    return {agent for hook in hooks if isinstance(hook, Looks) for agent in hook.agents}


def test_retry_gives_failed_files_more_tries_and_leaves_finished_ones_alone() -> None:
    task, queue = running_task(maxAttempt=1)
    end(take(queue))
    end(take(queue), BAD)
    run_agents()
    assert status(task) == "finished"
    command(task.id, "retry", "user:ada")
    run_agents()
    assert status(task) == "running"
    assert run_jobs(queue) == 1
    run_agents()
    assert (status(task), task.attempt_nr) == ("done", 1)
    assert sorted(File.objects.filter(type="input").values_list("attempt_nr", flat=True)) == [1, 1, 2, 2]


def test_an_aborted_task_can_be_retried() -> None:
    task, queue = running_task()
    command(task.id, "kill", "user:ada")
    run_agents()
    assert status(task) == "aborted"
    command(task.id, "retry", "user:ada")
    run_agents()
    assert run_jobs(queue) == 2
    run_agents()
    assert status(task) == "done"


def test_a_command_in_a_state_that_does_not_take_it_is_refused_and_changes_nothing() -> None:
    task, queue = running_task()
    run_jobs(queue)
    run_agents()
    assert status(task) == "done"
    before = task.epoch
    for name in ("kill", "finish", "retry"):
        with pytest.raises(NotAllowed):
            command(task.id, name, "user:ada")
    task.refresh_from_db()
    assert (task.status, task.epoch) == ("done", before)


def test_the_same_command_twice_is_one() -> None:
    task, _ = running_task()
    first = command(task.id, "kill", "user:ada").epoch
    assert command(task.id, "kill", "user:ada").epoch == first


def test_a_killed_parent_takes_its_waiting_children_with_it() -> None:
    task, _ = running_task()
    child = submitted(reading("child", "t.OUT", parentTaskName="t"))
    Task.objects.filter(id=child.id).update(parent_tid=task.id)
    run_agents()
    assert status(child) == "pending"
    command(task.id, "kill", "user:ada")
    run_agents(rounds=3)
    assert (status(task), status(child)) == ("aborted", "aborted")


def test_a_task_of_many_files_is_finished_and_retried_without_reading_them() -> None:
    task, _ = running_task(files=40)
    command(task.id, "finish", "user:ada")
    for name, after in (("finish", "passed"), ("retry", "ready")):
        with CaptureQueriesContext(connection) as seen:
            run_agents(3, ["command"])
        assert status(task) == after
        files = set(File.objects.filter(task_id=task.id).values_list("id", flat=True))
        named = [files & set(map(int, re.findall(r"\b\d+\b", query["sql"]))) for query in seen]
        assert max(map(len, named)) < 40, f"{name} hands every file over"
        run_agents(2, ["finish"])
        if name == "finish":
            command(task.id, "retry", "user:ada")
    changes = FileChange.objects.filter(task_id=task.id).values_list("old", "new", "who", "why")
    assert set(changes) == {
        ("ready", "failed", "agent:command", "the task was finished before it was used"),
        ("failed", "ready", "agent:command", "task retry"),
    }
    assert changes.count() == 80
    assert set(File.objects.filter(type="input").values_list("status", "max_attempt")) == {("ready", 6)}
