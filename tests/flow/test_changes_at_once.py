"""Changes of a task while generators make its jobs and pilots take them, each in a process of its own: no job keeps what was."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable

import pytest
from django.db import connection, connections

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.agency.run import run_agent
from brokerage.ledger.job_commands import kill_listed
from brokerage.ledger.task_changes import change_task
from brokerage.models import ComputingQueue, Job
from tests.builders import grid, parameters, submitted
from tests.flow.collecting import faults
from tests.flow.steps import try_take
from tests.locks import locked
from workqueues.models import GlobalShare, Task
from workqueues.rules.task.changes import CHANGES

pytestmark = pytest.mark.django_db(transaction=True)

PETRA = Principal("user", "petra", roles={"demo": frozenset({"production", "operator"})})


def change(task: Task, name: str, **wish: object) -> None:
    change_task(PETRA, Task.objects.get(id=task.id), CHANGES[name], CHANGES[name].read(wish)[0])


@pytest.fixture
def task() -> Task:
    """A task of 400 jobs, none of which is made."""
    gdpconfig.set_override("jobbroker", "NQUEUELIMITSITE", 100_000, who="ada", why="test")
    gdpconfig.set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    gdpconfig.set_override("jobgen", "USER_JOBS_PER_POINT", 0, who="ada", why="all jobs have the priority of their task")
    grid("ALPHA")
    for name, label in (("Work", ".*"), ("Express", "none")):
        GlobalShare.objects.create(name=name, vo="demo", value=50, prod_source_label=label, throttled=False)
    made = submitted(parameters(nEvents=400, nEventsPerJob=1))
    for agent in ("refine", "feed", "assign"):
        run_agent(agent, looked=True)
    return made


def start(*bodies: Callable[[], None]) -> Callable[[], None]:
    """Run the bodies at once, each in a process; what is given back waits for their end."""
    connections.close_all()  # a forked process must not share them
    forked = multiprocessing.get_context("fork")

    def ended(body: Callable[[], None]) -> None:
        body()
        connection.close()

    processes = [forked.Process(target=ended, args=(body,)) for body in bodies]
    for process in processes:
        process.start()

    def join() -> None:
        for process in processes:
            process.join(60)
            assert process.exitcode == 0

    return join


def _generate() -> None:
    for _ in range(12):
        run_agent("generate", looked=True)


def _flip(task: Task) -> None:
    for number in range(12):
        change(task, "share", share="Express" if number % 2 == 0 else "Work")
        change(task, "priority", priority=600 + number)


def _take() -> None:
    for _ in range(30):
        try_take(ComputingQueue.objects.get())


def test_jobs_that_are_made_and_taken_meanwhile_have_the_share_and_priority_of_the_task_too(task: Task) -> None:
    start(_generate, _generate, lambda: _flip(task), _take)()
    run_agent("generate", looked=True)
    task.refresh_from_db()
    assert (task.gshare, task.current_priority) == ("Work", 611)
    jobs = Job.objects.filter(status="activated")
    assert jobs.count() >= 350
    assert set(jobs.values_list("task_queue__gshare", "priority", "ready_priority")) == {("Work", 611, -611)}
    assert faults() == []


def test_a_change_waits_for_jobs_that_are_just_being_written(task: Task) -> None:
    held = f"SELECT FROM workqueues_dataset WHERE task_id = {task.id} AND type = 'log' FOR UPDATE"
    with locked(held):
        join = start(_generate)
        changing = start(lambda: change(task, "share", share="Express"))
    join()
    changing()
    task.refresh_from_db()
    assert (task.status, task.gshare) == ("running", "Express")
    assert set(Job.objects.values_list("task_queue__gshare", flat=True)) == {"Express"}


def _kill(ids: list[int], olga: Principal) -> None:
    for at in range(0, len(ids), 40):
        kill_listed(olga, ids[at : at + 40], "wrong")


def test_jobs_that_pilots_take_while_they_are_killed_are_cancelled_or_their_pilots_are_asked(task: Task) -> None:
    run_agent("generate", looked=True)
    run_agent("generate", looked=True)
    ids = list(Job.objects.order_by("id").values_list("id", flat=True))
    assert len(ids) == 400
    olga = Principal("user", "olga", roles={"demo": frozenset({"operator"})})
    start(_take, lambda: _kill(ids, olga), _take)()
    ends = set(Job.objects.filter(id__in=ids).values_list("status", "kill_requested"))
    assert ends <= {("cancelled", False), ("running", True), ("sent", True)}
    assert ("cancelled", False) in ends
    assert faults() == []


def _reassign(task: Task) -> None:
    change(task, "reassign", site="BETA")
    for _ in range(3):
        run_agent("command", looked=True)


def test_no_job_is_made_at_the_old_site_once_its_task_is_reassigned(task: Task) -> None:
    grid("BETA")
    Task.objects.update(site="ALPHA")
    start(_generate, _generate, lambda: _reassign(task))()
    for agent in ("command", "wake", "generate", "generate", "generate"):
        run_agent(agent, looked=True)
    live = Job.objects.filter(ended_at=None)
    assert set(live.values_list("computing_queue__name", flat=True)) == {"BETA"}
    assert live.count() == 400
    assert faults() == []
