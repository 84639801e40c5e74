"""A file waits before its next try, longer after each failure, and goes to another queue first where there is one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import F

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.expiry import expire_leases
from brokerage.models import ComputingQueue, Job, JobRetryHistory
from brokerage.queries.task_status import task_status
from brokerage.rules.dispatch.settlement import Report
from brokerage.rules.explain.task_status_text import headline, reasons
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, let_retry, run_agents, run_jobs, take, try_take
from workqueues.ledger.commands import command
from workqueues.models import File, Task

pytestmark = pytest.mark.django_db(transaction=True)

STOPPED = Report("failed", error_code="PILOT_STOPPED")


@pytest.fixture(autouse=True)
def failures_close_no_queue(transactional_db: None) -> None:
    """The analysis policy would leave out a queue at which jobs of the task failed."""
    set_override("core", "POLICY_analysis", "generic", who="ada", why="test")


def one_job(**more: Any) -> Task:
    task = submitted(parameters(nEvents=10, **more))
    run_agents(2)
    return task


def pause(task: Task) -> timedelta:
    """From now to the next try of the only file."""
    due = File.objects.get(task_id=task.id, type="pseudo_input").retry_due
    return timedelta() if due is None else due - datetime.now(UTC)


def about(pause: timedelta, seconds: float) -> bool:
    return seconds - 10 < pause.total_seconds() <= seconds


def test_a_file_waits_longer_after_each_failure_and_no_longer_than_the_longest_pause() -> None:
    (queue,) = grid("ALPHA")
    set_override("jobbroker", "RETRY_PAUSE_MAX", "100s", who="ada", why="test")
    task = one_job(maxAttempt=5)
    for seconds in (30, 60, 100):
        end(take(queue), BAD)
        assert about(pause(task), seconds)
        run_agent("generate", looked=True)
        assert try_take(queue) is None, "it is not tried again before it is due"
        let_retry()
        run_agent("generate", looked=True)


def test_what_the_files_wait_for_is_told() -> None:
    (queue,) = grid("ALPHA")
    task = one_job()
    end(take(queue), BAD)
    task.refresh_from_db()
    told = task_status(task)
    due = File.objects.get(task_id=task.id, type="pseudo_input").retry_due
    assert due is not None
    sentence = f"1 input file waits for another try after one that failed; the next is due at {due:%Y-%m-%d %H:%M:%S} UTC."
    assert headline(told) == f"Running: {sentence}"
    assert ("retry", sentence) in [(reason.kind, reason.message) for reason in reasons(told)]


def test_a_job_that_was_closed_waits_for_nothing() -> None:
    (queue,) = grid("ALPHA")
    task = one_job()
    end(take(queue), STOPPED)
    assert pause(task) == timedelta()
    run_agent("generate", looked=True)
    take(queue)


@pytest.mark.parametrize("code", ["PILOT_STOPPED", "OUTPUT_EXISTS"])
def test_a_pilot_that_breaks_off_again_and_again_uses_up_the_tries_of_the_file(code: str) -> None:
    (queue,) = grid("ALPHA")
    task = one_job(maxAttempt=4, maxFailure=1)
    for _ in range(3):
        end(take(queue), Report("failed", error_code=code, error_message="told to stop"))
        run_agent("generate", looked=True)
    end(take(queue), Report("failed", error_code=code, error_message="told to stop"))
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "failed"
    assert f"4 of 4 jobs ended with {code}: told to stop" in headline(task_status(task))


def test_a_site_that_is_drained_costs_its_files_no_pause_and_no_failure() -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters(nEvents=80, maxFailure=1))
    run_agents(2)
    assert run_jobs(queue, STOPPED) == 8
    run_agent("generate", looked=True)
    assert run_jobs(queue) == 8
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "done"


def test_a_lost_job_waits_as_a_failed_one() -> None:
    (queue,) = grid("ALPHA")
    task = one_job()
    take(queue)
    Job.objects.update(lease_until=datetime.now(UTC) - timedelta(seconds=1))
    assert expire_leases("reap", 10) == 1
    assert about(pause(task), 30)


def test_an_input_that_could_not_be_read_waits_by_its_tries_and_so_does_what_stood_beside_it() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t1", "in.data", maxAttempt=9))
    run_agents(2)
    for seconds in (30, 60):
        end(take(queue), Report("failed", missing_inputs=["in.data.000000"], error_code="INPUT"))
        files = File.objects.filter(task_id=task.id, type="input").order_by("id")
        waits = [file.retry_due - datetime.now(UTC) for file in files if file.retry_due]
        assert [about(wait, seconds) for wait in waits] == [True, True]
        File.objects.filter(task_id=task.id).update(held="", look_due=None)
        let_retry()
        run_agent("generate", looked=True)


def test_a_short_trouble_of_a_storage_does_not_use_up_all_tries() -> None:
    (queue,) = grid("ALPHA")
    task = one_job(maxAttempt=3)
    for _ in range(20):  # a second each
        run_agent("generate", looked=True)
        run_jobs(queue, BAD)
        File.objects.filter(retry_due__isnull=False).update(retry_due=F("retry_due") - timedelta(seconds=1))
    assert File.objects.get(task_id=task.id, type="pseudo_input").attempt_nr == 1


def test_who_asks_for_a_retry_does_not_wait() -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters(nEvents=20, maxAttempt=2))
    run_agents(2)
    assert run_jobs(queue, BAD) == 2
    let_retry()
    run_agent("generate", looked=True)
    assert run_jobs(queue, BAD) == 2
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "failed"
    command(task.id, "retry", "user:ada", "")
    run_agents(1, ("command",))
    run_agent("generate", looked=True)
    assert run_jobs(queue) == 2


def test_the_next_try_is_at_another_queue_where_there_is_one() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    task = submitted(parameters(nEvents=80, maxAttempt=9))
    run_agents(2)
    first = dict(Job.objects.values_list("id", "computing_queue_id"))
    assert set(first.values()) == {alpha.id, beta.id}
    for queue in (alpha, beta):
        run_jobs(queue, BAD)
    let_retry()
    run_agent("generate", looked=True)
    before = {f.id: f.job_id for f in File.objects.filter(task_id=task.id, type="pseudo_input")}
    assert not set(before.values()) & set(first), "all are tried again"
    pairs = Job.objects.filter(id__gt=max(first)).values_list("id", "computing_queue_id")
    history = dict(retries())
    assert [(first[history[job]], queue) for job, queue in pairs if first[history[job]] == queue] == []


def test_where_there_is_no_other_queue_the_next_try_is_at_the_same() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(id=beta.id).update(status="offline")
    one_job(maxAttempt=9)
    end(take(alpha), BAD)
    let_retry()
    run_agent("generate", looked=True)
    take(alpha)


def retries() -> list[tuple[int, int]]:
    """New job -> old job."""
    return list(JobRetryHistory.objects.values_list("new_job_id", "old_job_id"))
