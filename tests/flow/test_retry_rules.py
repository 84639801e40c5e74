"""Retry rules at work: what becomes of the files of a job that failed, and that its page and the histories say so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from brokerage.ledger.lease import Lease
from brokerage.ledger.unreported_ends import end_jobs
from brokerage.models import ComputingQueue, JobResult, JobSpec, RetryRule
from brokerage.queries.invariants import look
from brokerage.rules.dispatch.settlement import Report
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, let_retry, run_agents, take, try_take
from workqueues.models import EventRange, File, FileChange, Task

pytestmark = pytest.mark.django_db


def rule(name: str = "bad payload", action: str = "no_retry", **more: Any) -> RetryRule:
    """A rule for what the payload ends with."""
    return RetryRule.objects.create(**{"name": name, "action": action, "component": "pilot", "error_code": "PAYLOAD_EXIT"} | more)


def task_of(n: int = 2, **more: Any) -> tuple[Task, ComputingQueue]:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", n)
    task = submitted(reading("t", "in.data", **{"nFilesPerJob": 1, "maxAttempt": 5, **more}))
    run_agents()
    return task, queue


def told(job_id: int) -> list[tuple[str, str]]:
    return [(line["rule"], line["told"]) for line in JobResult.objects.get(job_id=job_id).retry_actions or []]


def page_of(address: str) -> str:
    client = Client()
    client.force_login(ensure_user("root", superuser=True))
    return client.get(address).text


def test_what_is_never_retried_is_given_up_at_once_and_the_pages_say_why(django_capture_on_commit_callbacks: Any) -> None:
    task, queue = task_of()
    rule()
    bad = take(queue)
    with django_capture_on_commit_callbacks(execute=True):
        assert end(bad, BAD) == "failed"
    file = File.objects.get(job_id=bad.job_id, type="input")
    assert (file.status, file.attempt_nr, file.max_attempt) == ("failed", 1, 1)
    assert told(bad.job_id) == [("bad payload", "its files are not tried again")]
    note, end_of_it = FileChange.objects.filter(file_id=file.id).order_by("id")
    assert (note.new, note.who) == ("limited", f"job:{bad.job_id}")
    assert note.why == "retry rule bad payload: its files are not tried again"
    assert (end_of_it.new, end_of_it.why) == ("given up", "no try is left: tries 1 of 1")
    page = page_of(f"/jobs/{bad.job_id}/")
    assert "PAYLOAD_EXIT" in page
    assert "by the retry rule <em>bad payload</em>: its files are not tried again." in page
    end(take(queue))
    run_agents()
    task.refresh_from_db()
    assert task.status == "finished"
    assert "the files of 1 job are not tried again, by a retry rule" in page_of(f"/tasks/{task.id}/")


def test_a_retry_of_the_task_tries_them_again() -> None:
    from workqueues.ledger.commands import command

    task, queue = task_of(1)
    rule()
    end(take(queue), BAD)
    run_agents()
    task.refresh_from_db()
    assert task.status == "failed"
    command(task.id, "retry", "user:ada")
    run_agents()
    end(take(queue))
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_limited_tries_end_when_they_are_used_up() -> None:
    task, queue = task_of(1)
    rule("twice", "limit_retry", max_attempt=2)
    for status in ("ready", "failed"):
        end(take(queue), BAD)
        assert File.objects.get(type="input").status == status
        let_retry()
        run_agents()
    task.refresh_from_db()
    assert task.status == "failed"
    assert FileChange.objects.filter(new="limited").count() == 1, "told when it changed something"


def test_what_counts_as_no_failure_uses_up_tries_only() -> None:
    _, queue = task_of(1, maxFailure=1)
    rule("site fault", "not_counted")
    end(take(queue), BAD)
    file = File.objects.get(type="input")
    assert (file.status, file.attempt_nr, file.failed_attempt) == ("ready", 1, 0)
    assert file.retry_due is not None, "it waits as after a failure"


def test_other_errors_and_rules_that_are_over_change_nothing() -> None:
    _, queue = task_of(1)
    rule("other", error_code="WALLTIME")
    rule("over", expires_at=timezone.now())
    rule("elsewhere", computing_queue="BETA")
    idle = rule("idle", active=False)
    job = take(queue)
    end(job, BAD)
    assert File.objects.get(type="input").status == "ready"
    assert told(job.job_id) == [("idle", "no retry, if the rule were active: nothing was done")]
    RetryRule.objects.filter(id=idle.id).delete()


def test_a_bad_pattern_in_the_database_stops_nothing() -> None:
    _, queue = task_of(1)
    rule("broken", pattern="(")
    rule("endless", pattern="(a+)+$")
    rule("good", pattern="exit code [0-9]")
    job = take(queue)
    assert end(job, BAD) == "failed"
    assert [name for name, _ in told(job.job_id)] == ["good"]


def test_jobs_that_end_without_a_report_follow_rules_too() -> None:
    _, queue = task_of(2)
    rule("silent", component="broker", error_code="LOST_HEARTBEAT")
    jobs = [take(queue).job_id, take(queue).job_id]
    end_jobs(jobs, "failed", "agent:reap", "no sign of life", sub_status="lost_heartbeat")
    assert set(File.objects.filter(type="input").values_list("status", flat=True)) == {"failed"}
    assert [told(id_) for id_ in jobs] == [[("silent", "its files are not tried again")]] * 2
    assert not [finding for finding in look() if finding.violations]


def test_events_of_a_file_that_other_jobs_have_stay_theirs() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 1)
    submitted(reading("t", "in.data", nFilesPerJob=None, nEventsPerJob=5, maxAttempt=5))
    run_agents()
    rule()
    end(take(queue), BAD)
    assert sorted(EventRange.objects.values_list("status", flat=True)) == ["fatal", "ready"]
    file = File.objects.get(type="input")
    assert (file.status, file.max_attempt) == ("running", 1)
    end(take(queue))
    file.refresh_from_db()
    assert file.status == "failed"
    assert not [finding for finding in look() if finding.violations]


def test_memory_is_asked_for_by_rules_alone(django_capture_on_commit_callbacks: Any) -> None:
    _, queue = task_of(1, ramCount=1000, ramUnit="MB")
    RetryRule.objects.all().delete()
    report = Report("failed", error_code="PAYLOAD_MEMORY", error_message="used too much", metrics={"max_rss_mb": 1500})
    end(take(queue), report)
    assert File.objects.get(type="input").ram_count == 0
    rule("killed", "increase_memory", error_code="PAYLOAD_EXIT", pattern=".*signal 9")
    run_agents()
    job = take(queue)
    end(job, Report("failed", error_code="PAYLOAD_EXIT", error_message="ended by signal 9", exit_code=137))
    assert File.objects.get(type="input").ram_count == 2000
    assert told(job.job_id) == [("killed", "2000 MB for the next try")]
    assert FileChange.objects.get(new="more memory").why == "retry rule killed: 2000 MB for the next try"
    run_agents()
    assert JobSpec.objects.latest("job_id").ram_mb == 1800


def test_a_task_may_say_itself_how_memory_grows() -> None:
    _, queue = task_of(1, ramCount=1000, ramUnit="MB", maxAttempt=9, retryRamOffset=1500, retryRamStep=400, retryRamMax=2200)
    for more in (1500, 1900, 2200, 2200):
        end(take(queue), Report("failed", error_code="PAYLOAD_MEMORY", error_message="", metrics={"max_rss_mb": 900}))
        assert File.objects.get(type="input").ram_count == more
        run_agents()


def test_less_input_for_the_next_jobs_of_a_task(django_capture_on_commit_callbacks: Any) -> None:
    _, queue = task_of(8, nFilesPerJob=None, nMaxFilesPerJob=8, maxAttempt=9)
    rule("too much", "reduce_input_per_job")
    for n_files, line in (
        (8, "less input for its task only after its second try"),
        (8, "1/2 of the input for the next jobs of its task"),
        (4, "the jobs of its task take no less than they do already"),
        (4, ""),
    ):
        job = take(queue)
        assert JobSpec.objects.get(job_id=job.job_id).n_input_files == n_files
        if line:
            with django_capture_on_commit_callbacks(execute=True):
                end(job, BAD)
            assert told(job.job_id) == [("too much", line)]
            run_agents()


def out_of_time(job: Lease) -> None:
    """The job fails after it ran for an hour beyond the base time of ten minutes."""
    now = timezone.now() - timedelta(minutes=5)
    JobSpec.objects.filter(job_id=job.job_id).update(created_at=now - timedelta(hours=2))
    end(job, replace(BAD, exit_code=137, start_time=now - timedelta(minutes=70), end_time=now))


def test_more_time_by_the_job_that_ran_out_of_it_while_none_has_finished(django_capture_on_commit_callbacks: Any) -> None:
    task, queue = task_of(3, cpuTime=2000, cpuTimeUnit="HS06sPerEvent", cpuEfficiency=90)
    rule("slow", "increase_cputime")
    job = take(queue)
    with django_capture_on_commit_callbacks(execute=True):
        out_of_time(job)
    assert told(job.job_id) == [("slow", "6600 HS06sPerEvent for the next jobs of its task")]
    task.refresh_from_db()
    assert (round(task.cpu_time or 0), task.cpu_time_unit) == (3600 * 10 * 1.1 / 0.9 / 10 * 1.5, "HS06sPerEvent")
    assert Audit.objects.get(act="task.cputime").reason == f"job {job.job_id} ran out of time"
    Task.objects.update(cpu_time=7000)
    job = take(queue)
    with django_capture_on_commit_callbacks(execute=True):
        out_of_time(job)
    assert told(job.job_id) == [("slow", "its task asks for as much time already")]


def test_once_jobs_have_finished_they_are_measured_again(django_capture_on_commit_callbacks: Any) -> None:
    task, queue = task_of(3)
    end(take(queue))
    rule("slow", "increase_cputime")
    rule("again", "limit_retry", component="payload", error_code="137", max_attempt=2)
    Task.objects.update(n_measured=200, assessment_time=timezone.now())
    for n, ago in ((200, 0), (1, 31)):
        Task.objects.update(assessment_time=timezone.now() - timedelta(minutes=ago))
        job = take(queue)
        with django_capture_on_commit_callbacks(execute=True):
            out_of_time(job)
        assert told(job.job_id) == [
            ("slow", "what the jobs of its task need is measured again, by those that have finished"),
            ("again", "its files are tried 2 times at most"),
        ]
        task.refresh_from_db()
        assert (task.n_measured, task.cpu_time) == (n, None)


def test_a_job_that_finishes_asks_nothing_of_rules() -> None:
    _, queue = task_of(2)
    rule()
    job = take(queue)
    with CaptureQueriesContext(connection) as seen:
        end(job)
    assert not [q for q in seen.captured_queries if "retryrule" in q["sql"]]
    assert try_take(queue) is not None


def test_a_task_without_files_follows_them_as_well() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10))
    run_agents()
    rule()
    end(take(queue), BAD)
    assert File.objects.get(type="pseudo_input").status == "failed"


def test_files_beside_those_of_the_master_have_no_limit() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 1)
    catalogue_dataset("other.data", 3)
    task = reading("t", "in.data", nFilesPerJob=1, maxAttempt=5)
    task["jobParameters"].append(
        {"type": "template", "param_type": "input", "dataset": "other.data", "value": "--beside ${IN2/L}", "ratio": 1}
    )
    submitted(task)
    run_agents()
    rule()
    end(take(queue), BAD)
    assert list(File.objects.filter(dataset__dataset_name="in.data").values_list("status", flat=True)) == ["failed"]
    beside = File.objects.filter(dataset__dataset_name="other.data")
    assert set(beside.values_list("status", flat=True)) == {"ready"}
    assert not [finding for finding in look() if finding.violations]
