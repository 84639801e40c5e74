"""A task that kills the process which works on it stops only itself: the fifth kill puts it into quarantine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.contrib.postgres.functions import TransactionNow
from django.db import connection, connections

from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import run_agent
from brokerage.models import ComputingQueue, Job
from tests.api.people import person
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import run_agents, take
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.commands import command
from workqueues.ledger.picking import take_files
from workqueues.models import Dataset, File, Task
from workqueues.states import TASK

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tasks() -> list[Task]:
    """Three tasks that are ready; the second is the one that does harm."""
    grid("ALPHA")
    made = []
    for name in ("first", "harmful", "last"):
        catalogue_dataset(f"{name}.in", 2)
        made.append(submitted(reading(name, f"{name}.in")))
    run_agents(1, ("refine", "feed", "assign"))
    return made


def at_harm(monkeypatch: pytest.MonkeyPatch, task: Task, harm: Callable[[], object]) -> None:
    """Whoever cuts jobs for the task comes to harm, as by a splitter of a plugin."""
    from brokerage.agents import generate

    whole = generate.jobs_from

    def jobs_from(other: Task, *rest: object) -> object:
        if other.id == task.id:
            harm()
        return whole(other, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(generate, "jobs_from", jobs_from)


def in_process(agent: str) -> int | None:
    """One run of the agent in a process of its own: its exit code."""
    connections.close_all()
    process = multiprocessing.get_context("fork").Process(target=_run, args=(agent,))
    process.start()
    process.join(60)
    return process.exitcode


def _run(agent: str) -> None:
    run_agent(agent, looked=True)
    connection.close()
    os._exit(0)


def let_claims_run_out() -> None:
    Task.objects.exclude(locked_by="").update(locked_time=TransactionNow() - timedelta(seconds=1))


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_kills_every_process_that_works_on_it_is_in_quarantine_and_its_neighbours_have_their_jobs(
    tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, bad, last = tasks
    at_harm(monkeypatch, bad, kill_self)
    killed = 0
    while not Task.objects.exclude(quarantined_at=None).exists():
        killed += in_process("generate") == -signal.SIGKILL
        let_claims_run_out()
    for _ in range(2):
        assert in_process("generate") == 0
    assert killed == 5
    assert {job.task_id for job in Job.objects.all()} == {first.id, last.id}
    bad.refresh_from_db()
    assert bad.quarantined_at is not None
    assert bad.locked_by == ""
    assert bad.error_dialog == (
        "agent generate was killed while it worked on this task: by lack of memory, by its time limit or from outside"
        " (5 of 5 times; no agent works on it until it is retried)"
    )
    assert set(File.objects.filter(task_id=bad.id, type="input").values_list("status", flat=True)) == {"ready"}
    for neighbour in (first, last):
        neighbour.refresh_from_db()
        assert (neighbour.agent_faults, neighbour.faulty_agent, neighbour.error_dialog) == (0, "", "")
    monkeypatch.undo()
    assert person("ada", ("demo", "submitter")).post(f"tasks/{bad.id}/retry/").status_code == 202
    run_agents(1)
    assert Job.objects.filter(task_id=bad.id).exists()


def test_a_process_that_is_killed_from_outside_leaves_no_mark_on_its_tasks(
    tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as once:
        at_harm(once, tasks[1], kill_self)
        assert in_process("generate") == -signal.SIGKILL
    let_claims_run_out()
    for _ in range(3):
        run_agent("generate", looked=True)
    assert {job.task_id for job in Job.objects.all()} == {task.id for task in tasks}
    assert set(Task.objects.values_list("agent_faults", "faulty_agent", "error_dialog")) == {(0, "", "")}


RUNS = """
import django, redis
django.setup()
from django.conf import settings
from broker_site.foundation.agency.run import run_agent
for runs in range(1, 61):
    assert run_agent("command", looked=True) == 0
    if not redis.Redis.from_url(settings.REDIS_URL).exists("look:command"):
        break
print(runs)
"""
"""Runs that follow each other by messages alone: how many, at most 60."""


def test_tasks_that_are_taken_alone_one_after_the_other_wait_for_no_period(tasks: list[Task], redis_url: str) -> None:
    """They are killed and their jobs run, so that there is nothing to do for them yet."""
    run_agents(1)
    while Job.objects.filter(status="activated").exists():
        take(ComputingQueue.objects.get())
    for task in tasks:
        command(task.id, "kill", "user:ada")
    Task.objects.update(agent_faults=2, faulty_agent="command")
    at = connection.settings_dict
    url = f"postgresql://{at['USER']}:{at['PASSWORD']}@/{at['NAME']}?host={quote(at['HOST'], safe='')}&port={at['PORT']}"
    env = os.environ | {"DATABASE_URL": url, "REDIS_URL": redis_url, "GRIDBROKER_PROFILE": "local"}
    env["DJANGO_SETTINGS_MODULE"] = "broker_site.settings"
    runs = subprocess.run([sys.executable, "-c", RUNS], env=env, check=True, capture_output=True, text=True).stdout
    assert len(tasks) <= int(runs) < 60
    assert not Task.objects.exclude(agent_faults=0).exists()


def test_the_time_limit_of_a_run_counts_for_the_task_at_work_and_the_rest_is_free_at_once(
    tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, slow, last = tasks

    def reach_limit() -> None:
        raise SoftTimeLimitExceeded

    at_harm(monkeypatch, slow, reach_limit)
    run_agent("generate", looked=True)
    assert {job.task_id for job in Job.objects.all()} == {first.id}
    slow.refresh_from_db()
    assert slow.error_dialog.startswith("agent generate failed on this task: the time of an agent's run was over")
    assert slow.agent_faults == 1
    assert not Task.objects.exclude(locked_by="").exists()
    assert f"task {slow.id}: the time of an agent's run was over" in Agent.objects.get(name="generate").left_out
    run_agent("generate", looked=True)
    assert {job.task_id for job in Job.objects.all()} == {first.id, last.id}


def test_a_task_for_which_the_memory_of_an_agent_does_not_suffice(tasks: list[Task], monkeypatch: pytest.MonkeyPatch) -> None:
    def take_all() -> None:
        raise MemoryError

    at_harm(monkeypatch, tasks[1], take_all)
    run_agent("generate", looked=True)
    assert {job.task_id for job in Job.objects.all()} == {tasks[0].id, tasks[2].id}
    tasks[1].refresh_from_db()
    assert tasks[1].error_dialog == (
        "agent generate failed on this task: it needs more memory than an agent may take (1 of 5 times; it is tried again)"
    )


HUNGRY = """
from broker_site.celery import app, limit_memory
limit_memory()
try:
    bytearray(2 * 10**9)
except MemoryError:
    print("refused", app.conf.worker_max_memory_per_child)
"""


def test_a_process_of_the_worker_gets_no_two_gigabytes() -> None:
    answer = subprocess.run([sys.executable, "-c", HUNGRY], capture_output=True, text=True, timeout=120, check=True)
    assert answer.stdout == "refused 750000\n"


def test_files_that_a_dead_generator_had_picked_are_there_again_whoever_takes_the_task_over() -> None:
    """Seen: the agent merge took over a task of which all inputs were picked, and gave it back so; nobody looked at it again."""
    grid("ALPHA")
    catalogue_dataset("t.in", 3)
    task = submitted(reading("t", "t.in"))
    run_agents(1, ("refine", "feed", "assign"))
    (claimed,) = claim_tasks("generate-dead", 60, TASK.generating, 1)
    dataset = Dataset.objects.get(task=task, type="input")
    assert len(take_files("generate-dead", claimed.id, dataset.id, 10)) == 3
    Task.objects.update(locked_time=TransactionNow() - timedelta(hours=1))
    (taken_over,) = claim_tasks("merge-next", 60, TASK.generating, 1)
    release(taken_over.id, "merge-next")
    dataset.refresh_from_db()
    assert (dataset.n_files_used, File.objects.filter(dataset=dataset, status="ready").count()) == (0, 3)
    run_agents(1, ("generate",))
    assert Job.objects.filter(task_id=task.id).exists()
