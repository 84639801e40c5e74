"""Children of a task that is run again: those that read its outputs go on with it, each once."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage.models import ComputingQueue, Job
from tests.builders import catalogue_dataset, grid, more_files, parameters, reading, submitted
from tests.flow.collecting import faults
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.commands import command
from workqueues.ledger.feed import finish_feeding
from workqueues.ledger.moves import Stale
from workqueues.models import Dataset, File, Task

pytestmark = pytest.mark.django_db


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def chain(queue: ComputingQueue, *, bad: int = 0, **more: Any) -> tuple[Task, Task, Task]:
    """A task, its child and its grandchild, each reading what the one before wrote; `bad`: failed jobs of the first."""
    catalogue_dataset("in.data", 4)
    first = submitted(reading("a", "in.data", maxAttempt=1))
    child = submitted(reading("b", "a.OUT", parentTaskName="a", nFilesPerJob=1, **more))
    grandchild = submitted(reading("c", "b.OUT", parentTaskName="b", nFilesPerJob=1))
    run_agents()
    for _ in range(bad):
        end(take(queue), BAD)
    settle(queue)
    return first, child, grandchild


def settle(queue: ComputingQueue, rounds: int = 5) -> None:
    """All jobs end well, until nothing is left to do."""
    for _ in range(rounds):
        run_agents()
        Task.objects.filter(status="pending").update(next_look_at="2026-01-01T00:00:00Z")
        run_jobs(queue)
    run_agents()


def finished_inputs(task: Task) -> int:
    return File.objects.filter(task=task, type="input", status="finished").count()


def test_a_retry_brings_children_and_theirs_what_it_adds() -> None:
    (queue,) = grid("ALPHA")
    first, child, grandchild = chain(queue, bad=1)
    assert [status(t) for t in (first, child, grandchild)] == ["finished"] * 3
    assert [finished_inputs(t) for t in (first, child, grandchild)] == [2, 1, 1]
    command(first.id, "retry", "user:ada")
    run_agents(1, names=["command"])
    assert (status(child), child.command, child.command_by) == ("toincexec", "incexec", "agent:command")
    assert f"task {first.id}, is run again" in child.error_dialog
    settle(queue)
    assert [status(t) for t in (first, child, grandchild)] == ["done"] * 3
    assert [finished_inputs(t) for t in (first, child, grandchild)] == [4, 2, 2]
    assert File.objects.filter(type="output", status="finished").values("dataset_id", "lfn").distinct().count() == 6
    assert not Dataset.objects.filter(state="mutable").exists()


def test_incexec_of_a_parent_does_the_same_and_the_agent_may_be_killed_in_between() -> None:
    (queue,) = grid("ALPHA")
    first, child, grandchild = chain(queue)
    more_files("in.data", "in.data.000010")
    command(first.id, "incexec", "user:ada")
    for _ in range(3):
        run_agents(1, names=["command"])
    settle(queue)
    assert [status(t) for t in (first, child, grandchild)] == ["done"] * 3
    assert [finished_inputs(t) for t in (first, child, grandchild)] == [5, 3, 3]
    assert [t.attempt_nr for t in (first, child, grandchild)] == [1, 1, 1]


def test_sole_leaves_children_alone() -> None:
    (queue,) = grid("ALPHA")
    first, child, _ = chain(queue, bad=1)
    n_jobs = Job.objects.filter(task_id=child.id).count()
    command(first.id, "retry", "user:ada", "sole retry: only this one")
    settle(queue)
    assert status(first) == "done"
    assert (status(child), child.attempt_nr, Job.objects.filter(task_id=child.id).count()) == ("finished", 0, n_jobs)


@pytest.mark.parametrize("end_of_child", ["aborted", "failed"])
def test_children_that_ended_badly_stay_as_they_are(end_of_child: str) -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    first = submitted(reading("a", "in.data", maxAttempt=1))
    child = submitted(reading("b", "a.OUT", parentTaskName="a", maxAttempt=1))
    run_agents()
    end(take(queue), BAD)
    end(take(queue))
    run_agents()
    if end_of_child == "aborted":
        command(child.id, "kill", "user:ada")
    else:
        Task.objects.filter(status="pending").update(next_look_at="2026-01-01T00:00:00Z")
        run_agents()
        end(take(queue), BAD)
    run_agents()
    assert (status(first), status(child)) == ("finished", end_of_child)
    command(first.id, "retry", "user:ada")
    settle(queue)
    assert (status(first), status(child), child.attempt_nr) == ("done", end_of_child, 0)


def test_a_child_that_still_runs_reads_again_when_all_else_is_through() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    first = submitted(reading("a", "in.data", maxAttempt=1))
    child = submitted(reading("b", "a.OUT", parentTaskName="a"))
    run_agents()
    end(take(queue), BAD)
    end(take(queue))
    run_agents()
    Task.objects.filter(status="pending").update(next_look_at="2026-01-01T00:00:00Z")
    run_agents()
    running = take(queue)
    assert (status(first), status(child)) == ("finished", "running")
    command(first.id, "retry", "user:ada")
    run_agents(names=["command"])
    assert (status(child), child.attempt_nr) == ("running", 0)
    assert faults() == []
    end(running)
    run_agents(1, names=["finish", "feed"])
    assert (status(child), f"waiting for the parent, task {first.id}" in child.error_dialog) == ("pending", True)
    settle(queue)
    assert [status(t) for t in (first, child)] == ["done", "done"]
    assert finished_inputs(child) == 2


def test_a_child_that_is_just_being_fed_waits_for_its_parent_instead() -> None:
    (queue,) = grid("ALPHA")
    first, child, _ = chain(queue, bad=1)
    run_agents(1, names=["command"])
    command(child.id, "incexec", "user:ada", "sole incexec")
    run_agents(1, names=["command", "refine"])
    assert len(claim_tasks("feed:early", 60, ["defined"], 5)) == 1, "it saw that the parent had ended"
    command(first.id, "retry", "user:ada")
    run_agents(1, names=["command"])
    with pytest.raises(Stale):
        finish_feeding("feed:early", child.id, "ready", "agent:feed")
    settle(queue)
    assert (status(first), status(child), finished_inputs(child)) == ("done", "done", 2)


def test_a_child_that_only_follows_its_parent_is_judged_anew() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    first = submitted(reading("a", "in.data", maxAttempt=1))
    child = submitted(parameters("b", parentTaskName="a"))
    run_agents()
    end(take(queue), BAD)
    settle(queue)
    assert (status(first), status(child)) == ("finished", "finished"), "all its files were processed, but its parent is not done"
    n_jobs = Job.objects.filter(task_id=child.id).count()
    command(first.id, "retry", "user:ada")
    run_agents(names=["command"])
    assert status(child) == "registered"
    settle(queue)
    assert (status(first), status(child)) == ("done", "done")
    assert Job.objects.filter(task_id=child.id).count() == n_jobs, "nothing is done twice"


def test_a_parent_that_was_inferred_takes_its_readers_along() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    first = submitted(reading("a", "in.data", maxAttempt=1))
    reader = submitted(reading("b", "a.OUT", nFilesPerJob=1))
    reader.input_writers.create(writer=first, dataset_name="a.OUT")
    run_agents()
    end(take(queue), BAD)
    settle(queue)
    assert (status(first), status(reader), finished_inputs(reader)) == ("finished", "done", 1)
    command(first.id, "retry", "user:ada")
    settle(queue)
    assert (status(first), status(reader), finished_inputs(reader)) == ("done", "done", 2)
