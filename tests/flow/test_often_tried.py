"""A task whose inputs are tried again and again rests, longer each time, and goes on by itself or when it is told to."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, Job
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import reasons
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, run_agents, take
from workqueues.ledger.commands import command
from workqueues.models import File, Task, TaskThrottle

pytestmark = pytest.mark.django_db


def tried(n: int, **more: object) -> tuple[Task, ComputingQueue]:
    """A task of one job which has failed `n` times."""
    (queue,) = grid("ALPHA")
    set_override("anal_jobbroker", "MIN_BAD_JOBS_TO_SKIP_PQ", 1000, who="test", why="failures do not speak against the queue")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", **{"maxAttempt": 20, **more}))
    run_agents()
    fail(queue, n)
    task.refresh_from_db()
    return task, queue


def fail(queue: ComputingQueue, n: int) -> None:
    for _ in range(n):
        end(take(queue), BAD)
        run_agents(1, ["stage"])  # it comes several times in the pause before the next try
        run_agents(1)


def minutes_left(task: Task) -> int:
    until = TaskThrottle.objects.get(task=task).until
    assert until is not None
    return round((until - task.status_since) / timedelta(minutes=1))


def let_rest() -> None:
    """The time of a throttled task is over."""
    TaskThrottle.objects.update(until=F("since") - timedelta(minutes=1))
    Task.objects.update(next_look_at=F("creation_date") - timedelta(minutes=1))


def test_after_five_tries_a_task_makes_no_jobs_for_two_hours_and_after_ten_for_eight() -> None:
    task, queue = tried(4)
    assert task.status == "running"
    fail(queue, 1)
    task.refresh_from_db()
    assert (task.status, task.old_status, task.num_throttled, minutes_left(task)) == ("throttled", "running", 1, 120)
    assert Job.objects.filter(ended_at=None).count() == 0
    message = reasons(task_status(task))[0].message
    assert message.startswith("It makes no new jobs until ")
    assert message.endswith("a file was tried 5 times without success.")
    let_rest()
    run_agents()
    task.refresh_from_db()
    assert (task.status, TaskThrottle.objects.count()) == ("running", 0)
    fail(queue, 4)
    task.refresh_from_db()
    assert task.status != "throttled"
    fail(queue, 1)
    task.refresh_from_db()
    assert (task.status, task.num_throttled, minutes_left(task)) == ("throttled", 2, 480)


def test_a_throttled_task_is_resumed_killed_or_paused_and_resumed() -> None:
    task, queue = tried(5)
    command(task.id, "resume", "user:ada", "the site is mended")
    run_agents()
    task.refresh_from_db()
    assert (task.status == "throttled", TaskThrottle.objects.count()) == (False, 0)
    fail(queue, 5)
    command(task.id, "pause", "user:ada")
    command(task.id, "resume", "user:ada")
    run_agents()
    task.refresh_from_db()
    assert (task.status == "throttled", Job.objects.filter(ended_at=None).count()) == (False, 1)
    command(task.id, "kill", "user:ada")
    run_agents()
    task.refresh_from_db()
    assert task.status == "aborted"


def test_who_is_never_throttled_goes_on() -> None:
    task, _ = tried(5, noThrottle=True)
    assert (task.status == "throttled", task.num_throttled) == (False, None)


def test_a_file_that_ended_well_says_nothing() -> None:
    task, queue = tried(4)
    end(take(queue))
    File.objects.filter(type="input").update(attempt_nr=5)
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
