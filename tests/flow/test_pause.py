"""Pause and resume: a paused task makes and hands out nothing, what runs goes on, and nothing is lost of where it was."""

from __future__ import annotations

import pytest

from broker_site.foundation.kernel.machine import NotAllowed
from brokerage.models import ComputingQueue, Job, JobChange
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import headline, reasons
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import end, run_agents, run_jobs, take, try_take
from tests.flow.test_moving_inputs import away, bring, jobs, under_way
from workqueues.ledger.commands import command
from workqueues.models import Task

pytestmark = pytest.mark.django_db


def running_task(files: int = 4) -> tuple[Task, ComputingQueue]:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", files)
    task = submitted(reading("t", "in.data"))
    run_agents()
    return task, queue


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def test_a_paused_task_hands_out_nothing_while_its_running_jobs_go_on_and_is_done_after_it_was_resumed() -> None:
    task, queue = running_task()
    held = take(queue)
    command(task.id, "pause", "user:ada", "look at the logs first")
    run_agents()
    assert (status(task), task.old_status, task.command) == ("paused", "running", "")
    assert try_take(queue) is None
    assert end(held) == "finished"
    run_agents(4)
    assert sorted(Job.objects.values_list("status", flat=True)) == ["finished", "throttled"]
    assert status(task) == "paused", "nothing else is done with it"
    (of_pause, of_state) = reasons(task_status(task))[:2]
    assert of_pause.message == "user:ada paused it: look at the logs first."
    assert of_state.message == "Once it is resumed, it is running again."
    assert headline(task_status(task)) == "Paused by user:ada: look at the logs first"
    command(task.id, "resume", "user:bob")
    run_agents(1)
    assert (status(task), task.command_by) == ("running", "")
    assert run_jobs(queue) == 1
    run_agents()
    assert status(task) == "done"
    moves = JobChange.objects.filter(why__contains="its task is").order_by("id").values_list("old", "new", "why")
    assert list(moves) == [
        ("activated", "throttled", "its task is paused"),
        ("throttled", "activated", "its task is resumed"),
    ]


def test_a_task_is_paused_before_it_has_jobs_and_while_it_waits() -> None:
    grid("ALPHA")
    task = submitted(reading("t", "in.data"))
    command(task.id, "pause", "user:ada")
    catalogue_dataset("in.data", 2)
    run_agents(3)
    assert (status(task), Job.objects.count()) == ("paused", 0)
    command(task.id, "resume", "user:ada")
    run_agents(3)
    assert (status(task), Job.objects.count()) == ("running", 1)
    ComputingQueue.objects.update(status="offline")
    catalogue_dataset("other.data", 2)
    waiting = submitted(reading("w", "other.data"))
    run_agents(2)
    assert (status(waiting), waiting.old_status) == ("pending", "ready")
    command(waiting.id, "pause", "user:ada")
    assert (status(waiting), waiting.old_status) == ("paused", "ready")
    command(waiting.id, "resume", "user:ada")
    assert status(waiting) == "ready"


def test_paused_and_resumed_before_the_agent_came_leaves_all_jobs_waiting() -> None:
    task, queue = running_task()
    command(task.id, "pause", "user:ada")
    command(task.id, "resume", "user:ada")
    run_agents()
    assert status(task) == "running"
    assert run_jobs(queue) == 2


@pytest.mark.parametrize(("name", "ended"), [("kill", "aborted"), ("finish", "finished")])
def test_a_paused_task_is_killed_or_finished_with_its_waiting_jobs(name: str, ended: str) -> None:
    task, queue = running_task()
    end(take(queue))
    command(task.id, "pause", "user:ada")
    run_agents()
    command(task.id, name, "user:ada")
    run_agents(3)
    assert status(task) == ended
    assert sorted(Job.objects.values_list("status", flat=True)) == ["cancelled", "finished"]


def test_what_is_not_paused_is_not_resumed_and_what_ended_is_not_paused() -> None:
    task, queue = running_task()
    with pytest.raises(NotAllowed):
        command(task.id, "resume", "user:ada")
    run_jobs(queue)
    run_agents()
    assert status(task) == "done"
    with pytest.raises(NotAllowed):
        command(task.id, "pause", "user:ada")


def test_a_job_whose_input_comes_while_its_task_is_paused_waits_for_the_task() -> None:
    task, beta = away()
    command(task.id, "pause", "user:ada")
    run_agents(1)
    bring(*under_way())
    assert {state for state, _ in jobs()} == {"throttled"}
    assert try_take(beta) is None
    command(task.id, "resume", "user:ada")
    run_agents(1)
    assert {state for state, _ in jobs()} == {"activated"}
