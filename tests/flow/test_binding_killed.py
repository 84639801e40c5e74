"""Open jobs when who works on them dies after any of its statements: nothing half done is seen, and the work goes on (row X4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import connection
from hypothesis import settings
from psycopg2.extensions import cursor as Cursor  # noqa: N812 - a class with a small name

from broker_site.foundation.agency.run import run_agent
from brokerage.models import ComputingQueue, Job, JobOpening
from brokerage.queries.invariants import look
from brokerage.states import JOB
from tests.builders import grid, parameters, submitted
from tests.flow.steps import BAD, end, let_retry, run_agents, run_jobs, take, try_take
from workqueues.ledger.commands import command
from workqueues.models import File, Task

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = ("ALPHA", "BETA", "GAMMA")
MAKING = ("refine", "feed", "assign", "generate")
ALONE = ("SAVEPOINT", "RELEASE", "ROLLBACK", "PREPARE")
"""Statements that change nothing by themselves."""
MOST_STATEMENTS = 400
STRIDE = 1 if settings.get_current_profile_name() == "thorough" else 4
"""The making of jobs has many statements: a usual run does not die at each, `make soak` does."""
LATELY = TransactionNow() - timedelta(seconds=1)


class Killed(BaseException):
    """The process is gone: nothing that follows happens, and nobody tells of it."""


class DyingCursor(Cursor):
    """Its process dies after so many statements, all cursors counted together; -1: it lives."""

    left = -1

    def execute(self, query: Any, values: Any = None) -> None:
        super().execute(query, values)
        self._count(query.decode(errors="replace") if isinstance(query, bytes) else str(query))

    def copy_expert(self, sql: Any, file: Any, size: int = 8192) -> None:
        super().copy_expert(sql, file, size)
        self._count(str(sql))

    def _count(self, text: str) -> None:
        if DyingCursor.left >= 0 and not text.lstrip().startswith(ALONE):
            DyingCursor.left -= 1
            if DyingCursor.left < 0:
                raise Killed


@contextmanager
def dying_after(statements: int) -> Iterator[None]:
    """Whoever works dies after so many statements, if there are so many."""
    connection.ensure_connection()
    before = connection.connection.cursor_factory
    connection.connection.cursor_factory, DyingCursor.left = DyingCursor, statements - 1
    try:
        yield
    finally:
        connection.connection.cursor_factory, DyingCursor.left = before, -1


def killed_everywhere(act: Callable[[], object], stride: int = 1) -> int:
    """Do it again and again, each time for some statements longer, to the end: at how many of them it may have died. What holds,
    holds after each.
    """
    for n in range(1, MOST_STATEMENTS, stride):
        try:
            with dying_after(n):
                act()
        except Killed:
            let_claims_end()
            holds()
        else:
            holds()
            return n - 1
    raise AssertionError("it does not end")


def let_claims_end() -> None:
    """What the dead have claimed is free again, and nobody holds the many deaths against a task."""
    Task.objects.exclude(locked_by="").update(locked_time=LATELY)
    Task.objects.update(agent_faults=0, faulty_agent="", quarantined_at=None)
    let_retry()
    Task.objects.filter(next_look_at__isnull=False).update(next_look_at=LATELY)


def holds() -> None:
    """The invariants, and all that a queue brings with it: a job has it with its storage and its datasets, or none of them."""
    assert [f"{found.invariant.name}: {found.examples}" for found in look() if found.violations] == []
    for job_id, queue, storage in Job.objects.values_list("id", "computing_queue__name", "storage"):
        assert storage == (f"{queue}_DISK" if queue else ""), job_id
    queues = dict(Job.objects.exclude(computing_queue=None).values_list("id", "computing_queue__name"))
    for made_by, site in File.objects.filter(out_job_id__in=queues).values_list("out_job_id", "dataset__site"):
        assert site in ("", queues[made_by or 0]), made_by


def late(mode: str = "late", **more: Any) -> Task:
    """A task of four jobs whose datasets belong to queues, up to its assignment."""
    task = submitted(
        parameters("t", binding=mode, bindingAfter=600 if mode == "late_after" else None, instantiateTmplSite=True, maxAttempt=50)
        | more
    )
    run_agents(names=MAKING[:-1])
    return task


def made(mode: str = "late", **more: Any) -> Task:
    """The same with its jobs."""
    task = late(mode, **more)
    run_agent("generate", looked=True)
    assert Job.objects.count() == 4
    return task


def done(task: Task, status: str = "done") -> None:
    """All that is left is done, and the task ends; each of its files was used once."""
    for _ in range(6):
        let_claims_end()
        Job.objects.filter(lease_until__isnull=False).update(lease_until=LATELY)
        run_agents(1)
        for queue in ComputingQueue.objects.order_by("name"):
            run_jobs(queue)
        run_agents()
        task.refresh_from_db()
        if task.status == status:
            break
    assert (task.status, task.error_dialog) == (status, task.error_dialog)
    holds()
    assert not Job.objects.filter(ended_at=None).exists()
    assert not JobOpening.objects.filter(due__lte=TransactionNow()).exists()
    if status == "done":
        assert Job.objects.filter(status="finished").count() == 4


def states() -> Counter[tuple[str, str | None]]:
    return Counter(Job.objects.values_list("status", "computing_queue__name"))


def agent(name: str) -> Callable[[], object]:
    return partial(run_agent, name, looked=True)


@pytest.mark.parametrize("mode", ["late", "late_after"])
def test_jobs_are_made_open_whole_or_not_at_all(mode: str) -> None:
    grid(*NAMES)
    task = late(mode)

    def make() -> None:
        run_agent("wake", looked=True)
        run_agent("generate", looked=True)

    assert killed_everywhere(make, STRIDE) > 10
    assert Job.objects.count() == 4
    assert Job.objects.filter(computing_queue=None).count() == (4 if mode == "late" else 0)
    assert JobOpening.objects.count() == (0 if mode == "late" else 4)
    done(task)


def test_a_pilot_gets_an_open_job_with_all_that_a_queue_brings_or_none() -> None:
    beta = grid(*NAMES)[1]
    task = made()
    assert killed_everywhere(partial(try_take, beta)) > 3
    assert Job.objects.filter(status__in=JOB.leased, computing_queue=beta).exists()
    assert {storage for (storage,) in Job.objects.filter(computing_queue=beta).values_list("storage")} == {"BETA_DISK"}
    done(task)


def test_jobs_are_opened_whole_or_not_at_all() -> None:
    grid(*NAMES)
    task = made("late_after")
    JobOpening.objects.update(due=LATELY)
    assert killed_everywhere(agent("reap")) > 10
    assert states() == {("activated", None): 4}
    done(task)


def test_open_jobs_that_no_queue_runs_any_more_are_closed_whole_or_not_at_all() -> None:
    grid(*NAMES)
    task = made()
    ComputingQueue.objects.update(status="offline", status_since=TransactionNow() - timedelta(hours=2))
    assert killed_everywhere(agent("reap")) > 10
    assert states() == {("closed", None): 4}
    ComputingQueue.objects.update(status="online")
    done(task)


def test_open_jobs_that_waited_too_long_are_closed_whole_or_not_at_all() -> None:
    grid(*NAMES)
    task = made()
    Job.objects.update(status_since=TransactionNow() - timedelta(days=30))
    assert killed_everywhere(agent("reap")) > 10
    assert states() == {("closed", None): 4}
    done(task)


def test_the_next_try_of_an_open_job_is_made_whole_or_not_at_all() -> None:
    alpha = grid(*NAMES)[0]
    task = made()
    end(take(alpha), BAD)

    def again() -> None:
        run_agent("wake", looked=True)
        run_agent("generate", looked=True)

    let_claims_end()
    assert killed_everywhere(again, STRIDE) > 10
    assert states() == {("failed", "ALPHA"): 1, ("activated", None): 4}
    done(task)


@pytest.mark.parametrize("mode", ["late", "late_after"])
def test_jobs_are_held_back_opened_and_let_go_whole_or_not_at_all(mode: str) -> None:
    grid(*NAMES)
    task = made(mode)
    command(task.id, "pause", "user:ada")
    assert killed_everywhere(agent("command")) > 3
    assert set(Job.objects.values_list("status", flat=True)) == {"throttled"}
    JobOpening.objects.update(due=LATELY)
    assert killed_everywhere(agent("reap")) > 10
    assert states() == {("throttled", None): 4}
    command(task.id, "resume", "user:ada")
    assert killed_everywhere(agent("command")) > 3
    assert states() == {("activated", None): 4}
    done(task)


@pytest.mark.parametrize("mode", ["late", "late_after"])
def test_open_jobs_end_with_their_task_whichever_statement_its_agents_die_at(mode: str) -> None:
    beta = grid(*NAMES)[1]
    task = made(mode)
    if mode == "late":
        take(beta)
    command(task.id, "kill", "user:ada")
    assert killed_everywhere(agent("command")) > 3
    assert Counter(Job.objects.values_list("status", flat=True))["cancelled"] >= 3
    done(task, "aborted")
