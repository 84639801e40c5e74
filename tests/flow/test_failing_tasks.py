"""A production task of which too many jobs fail makes no more of them until somebody has looked at it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, Job, JobResult
from brokerage.queries.task_status import task_status
from brokerage.rules.dispatch.settlement import Report
from brokerage.rules.explain.task_status_text import headline, reasons
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, ROUND, end, run_agents, take, try_take
from workqueues.ledger.commands import command
from workqueues.models import Task, TaskThrottle

pytestmark = pytest.mark.django_db

WHY = "6 of its latest 10 jobs failed, 50 % or more are too many; look at it, then resume it"


def ended(queue: ComputingQueue, report: Report | None = None) -> None:
    """The next job ends so, now."""
    leased = take(queue)
    end(leased, report)
    Job.objects.filter(id=leased.job_id).update(ended_at=Now())


def key(name: str, value: float) -> None:
    set_override("watchdog", name, value, who="ada", why="test")


@pytest.fixture
def queue() -> ComputingQueue:
    (made,) = grid("ALPHA")
    key("MAX_JOB_FAILURE_RATE_TO_PAUSE_managed", 0.5)
    key("MIN_JOBS_TO_PAUSE_managed", 10)
    key("MIN_REMAINING_JOBS_TO_PAUSE_managed", 10)
    return made


def task(queue: ComputingQueue, good: int = 4, bad: int = 6, jobs: int = 40, **more: Any) -> Task:
    """A task of which so many jobs finished and failed."""
    catalogue_dataset("in.data", jobs)
    made = submitted(reading("t", "in.data", **{"prodSourceLabel": "managed", "nFilesPerJob": 1, "maxAttempt": 4, **more}))
    run_agents(3, ("refine", "feed", "assign", "generate"))
    for report in [None] * good + [BAD] * bad:
        ended(queue, report)
    run_agents(1, ["watch"])
    made.refresh_from_db()
    return made


def test_it_says_why_and_waiting_jobs_still_run(queue: ComputingQueue) -> None:
    made = task(queue)
    assert (made.status, made.old_status) == ("throttled", "running")
    assert headline(task_status(made)) == f"Throttled: {WHY}"
    assert reasons(task_status(made))[0].message == f"It makes no new jobs while this holds: {WHY}."
    assert task_status(made).to_document()["throttles"][0]["cause"] == "failing"
    before = Job.objects.count()
    run_agents(names=ROUND)
    made.refresh_from_db()
    assert (made.status, Job.objects.count()) == ("throttled", before), "time does not end it"
    assert try_take(queue) is not None


def test_who_resumes_it_has_seen_it_and_only_new_failures_count(queue: ComputingQueue) -> None:
    made = task(queue)
    command(made.id, "resume", "user:ada", "the release is mended")
    run_agents(names=ROUND)
    made.refresh_from_db()
    assert (made.status, TaskThrottle.objects.count()) == ("running", 0)
    for _ in range(9):
        ended(queue, BAD)
    run_agents(1, ["watch"])
    made.refresh_from_db()
    assert made.status == "running"
    ended(queue, BAD)
    run_agents(1, ["watch"])
    made.refresh_from_db()
    assert made.status == "throttled"
    assert "10 of its latest 10 jobs failed" in made.error_dialog


@pytest.mark.parametrize(
    ("counts", "more"),
    [
        ({"good": 4, "bad": 5}, {}),
        ({"good": 6, "bad": 5}, {}),
        ({"jobs": 12}, {}),
        ({}, {"noAutoPause": True}),
        ({}, {"prodSourceLabel": "user"}),
        ({}, {"prodSourceLabel": "test"}),
    ],
    ids=["few ended", "few failed", "few left", "never", "analysis", "another label"],
)
def test_these_go_on(queue: ComputingQueue, counts: dict[str, int], more: dict[str, Any]) -> None:
    set_override("anal_jobbroker", "MIN_BAD_JOBS_TO_SKIP_PQ", 1000, who="test", why="failures do not speak against the queue")
    assert task(queue, **counts, **more).status == "running"


def test_a_share_or_work_queue_may_have_a_limit_of_its_own(queue: ComputingQueue) -> None:
    key("MAX_JOB_FAILURE_RATE_TO_PAUSE_managed_default", 0.7)
    assert task(queue).status == "running"
    key("MAX_JOB_FAILURE_RATE_TO_PAUSE_managed_default", 0.6)
    run_agents(1, ["watch"])
    assert Task.objects.get().status == "throttled"


def test_what_the_jobs_used_may_count_instead(queue: ComputingQueue) -> None:
    key("MAX_JOB_FAILURE_RATE_TO_PAUSE_managed", 0)
    key("MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE_managed", 0.7)
    made = task(queue, good=8, bad=2)
    assert made.status == "running"
    now = timezone.now()
    JobResult.objects.update(start_time=now - timedelta(hours=1), end_time=now)
    JobResult.objects.filter(job__status="failed").update(start_time=now - timedelta(hours=12))
    run_agents(1, ["watch"])
    made.refresh_from_db()
    assert made.status == "throttled"
    assert made.error_dialog == (
        "75 % of the HEP score of its latest 10 jobs went to failed ones, 70 % or more are too many; look at it, then resume it"
    )


def test_without_a_limit_nothing_rests() -> None:
    (queue,) = grid("ALPHA")
    key("MIN_JOBS_TO_PAUSE_managed", 10)
    assert task(queue).status == "running"


def test_one_that_came_to_its_end_meanwhile_rests_no_more_and_a_retry_counts_anew(queue: ComputingQueue) -> None:
    made = task(queue, jobs=20, maxAttempt=1)
    assert made.status == "throttled"
    for _ in range(10):
        ended(queue)
    run_agents(3, ROUND)
    made.refresh_from_db()
    assert made.status == "finished"
    assert not TaskThrottle.objects.exists()
    command(made.id, "retry", "user:ada")
    run_agents(names=ROUND)
    made.refresh_from_db()
    assert made.status == "running"
