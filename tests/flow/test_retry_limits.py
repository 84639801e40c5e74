"""Limits of retries: a task beyond one is exhausted, or keeps its end, with the reason; who may go beyond them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, JobResult
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, run_agents, take
from workqueues.ledger.commands import command_task
from workqueues.models import File, Task, TaskChange
from workqueues.rules.task.commands import COMMANDS

pytestmark = pytest.mark.django_db

ADA = Principal("user", "ada", roles={"demo": frozenset({"submitter"})})
MANAGER = Principal("user", "mia", roles={"demo": frozenset({"operator"})})
RETRY = COMMANDS["retry"]


def limit(name: str, value: float, label: str = "user") -> None:
    set_override("retry_task", f"{name}_{label}", str(value), who="ada", why="test")


def ended(**more: Any) -> tuple[Task, ComputingQueue]:
    """A task of two files, of which one failed for good."""
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", nFilesPerJob=1, maxAttempt=1, **more))
    run_agents()
    end(take(queue), BAD)
    end(take(queue))
    run_agents()
    task.refresh_from_db()
    assert task.status == "finished"
    return task, queue


def retried(task: Task, who: Principal = ADA, **options: bool) -> Task:
    command_task(who, task, RETRY, "please", options)
    run_agents()
    task.refresh_from_db()
    return task


def test_a_file_that_has_as_many_tries_as_can_be_counted_gets_no_more_and_is_tried_again() -> None:
    """Seen: with more than its column holds the agent failed on the task."""
    task, _ = ended()
    File.objects.filter(type="input").update(max_attempt=32_767)
    assert retried(task).status == "running"


def test_without_limits_a_task_may_be_retried_for_ever() -> None:
    task, queue = ended()
    for n in range(1, 4):
        assert retried(task).attempt_nr == n
        end(take(queue), BAD)
        run_agents()
        task.refresh_from_db()
        assert task.status == "finished"


def test_a_task_beyond_its_retries_is_exhausted_with_the_reason_and_ends_in_time() -> None:
    task, queue = ended()
    limit("TASK_MAX_ATTEMPT", 1)
    limit("TASK_MAX_ATTEMPT", 0, "managed")
    assert retried(task).attempt_nr == 1
    end(take(queue), BAD)
    run_agents()
    task.refresh_from_db()
    why = "not retried: it was retried 1 times, the limit is 1 (TASK_MAX_ATTEMPT_user)"
    assert (retried(task).status, task.error_dialog) == ("exhausted", why)
    assert TaskChange.objects.filter(task_id=task.id).latest("id").why == why
    assert File.objects.filter(type="input", status="failed").count() == 1, "nothing was reopened"
    assert retried(task).status == "exhausted", "the next one fares no better"
    set_override("watchdog", "EXHAUSTED_TIMEOUT", "1s", who="ada", why="test")
    Task.objects.update(status_since=timezone.now() - timedelta(hours=1))
    run_agents()
    task.refresh_from_db()
    assert task.status == "finished"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("MAX_JOB_FAILURE_RATE", 0.5, "1 of its 2 jobs failed, the limit is 50%"),
        ("MAX_FAILED_HEP_SCORE_HOURS", 5, "its failed jobs used 10 HEP-score hours, the limit is 5"),
        ("MAX_FAILED_HEP_SCORE_RATE", 0.5, "its failed jobs did 50% of the work, the limit is 50%"),
        ("MIN_CPU_EFFICIENCY", 60, "its jobs used 50 % of their cores, the limit is 60 %"),
    ],
)
def test_jobs_that_failed_or_idled_exhaust_a_task(name: str, value: float, reason: str) -> None:
    task, _ = ended()
    now = timezone.now()
    JobResult.objects.update(start_time=now - timedelta(hours=1), end_time=now, metrics={"cpu_s": 1800})
    limit(name, value)
    assert (retried(task).status, task.error_dialog) == ("exhausted", f"not retried: {reason} ({name}_user)")


def test_beyond_the_tries_of_its_files_no_retry_is_accepted_and_nothing_changes() -> None:
    task, _ = ended()
    limit("JOB_MAX_ATTEMPT", 1)
    with pytest.raises(Refused) as refused:
        command_task(ADA, task, RETRY)
    assert refused.value.status == 409
    assert "a file of it may have 1 tries already, the limit is 1 (JOB_MAX_ATTEMPT_user)" in refused.value.detail
    task.refresh_from_db()
    assert task.status == "finished"


def test_a_limit_that_comes_between_leaves_the_task_what_it_was() -> None:
    task, _ = ended()
    command_task(ADA, task, RETRY)
    limit("JOB_MAX_ATTEMPT", 1)
    run_agents(1)
    task.refresh_from_db()
    assert task.status == "finished"
    assert task.error_dialog.startswith("not retried: a file of it may have 1 tries already")


def test_who_has_the_right_goes_beyond_all_limits() -> None:
    task, queue = ended()
    limit("JOB_MAX_ATTEMPT", 1)
    limit("MAX_JOB_FAILURE_RATE", 0.1)
    with pytest.raises(Refused) as refused:
        command_task(ADA, task, RETRY, "", {"transcend": True})
    assert refused.value.status == 403
    assert "has the role production there, as it takes to retry" in refused.value.detail
    assert retried(task, MANAGER, transcend=True).status in ("ready", "running")
    end(take(queue))
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_words_of_a_comment_are_no_option() -> None:
    task, _ = ended()
    limit("MAX_JOB_FAILURE_RATE", 0.1)
    command_task(ADA, task, RETRY, "transcend retry: now")
    run_agents(1)
    task.refresh_from_db()
    assert task.status == "exhausted"


@pytest.mark.parametrize("cpu_s", [1e308, -1e308, -5, "NaN"])
def test_cpu_times_that_no_job_can_have_used_say_nothing_of_the_efficiency(cpu_s: float | str) -> None:
    limit("MIN_CPU_EFFICIENCY", 50)
    task, _ = ended()
    now = timezone.now()
    JobResult.objects.update(metrics={"cpu_s": cpu_s}, start_time=now - timedelta(hours=1), end_time=now)
    task = retried(task)
    assert (task.status, task.agent_faults) == ("running", 0), task.error_dialog
