"""The log of a job that failed is registered at once and travels behind it; one that cannot be brought leaves its dataset."""

from __future__ import annotations

import pytest

from brokerage.ledger.lease import Lease
from brokerage.models import ComputingQueue, Job, ReplicaChange, TransferWish
from brokerage.rules.dispatch.settlement import Report
from tests.builders import parameters, reading, submitted
from tests.flow.collecting import PRODUCTION, bring, faults, lose, nucleus_grid, running, statuses, visible
from tests.flow.steps import end, good, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import File, FileChange, Replica

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> ComputingQueue:
    return nucleus_grid()


def failed(leased: Lease) -> Report:
    """A report with the log alone."""
    log = [o for o in good(leased.job_id).outputs if ".log." in o.lfn]
    return Report("failed", log, error_code="PAYLOAD_EXIT", error_message="x")


def test_the_log_of_a_failed_job_travels_behind_it(queue: ComputingQueue) -> None:
    running(parameters("t", nEvents=10, maxAttempt=1, **PRODUCTION))
    leased = take(queue)
    assert end(leased, failed(leased)) == "failed"
    assert list(TransferWish.objects.filter(closed_at=None).values_list("role", "job_id")) == [("log", leased.job_id)]
    assert File.objects.get(type="log").status == "finished"
    assert visible("t.log") == 0
    assert faults() == []
    assert bring() == 1
    assert visible("t.log") == 1
    assert faults() == []
    assert statuses() == {"failed"}


def test_a_log_that_cannot_be_brought_is_kept_until_the_retry_and_then_leaves_its_dataset(queue: ComputingQueue) -> None:
    task = running(parameters("t", nEvents=10, maxAttempt=1, **PRODUCTION))
    leased = take(queue)
    end(leased, failed(leased))
    run_agents()
    lose()
    log = File.objects.get(out_job_id=leased.job_id, type="log")
    assert Replica.objects.get(file__lfn=log.lfn).state == "available"
    assert faults() == []
    command(task.id, "retry", "user:ada")
    run_agents()
    assert Job.objects.filter(status="activated").count() == 1
    log.refresh_from_db()
    assert log.lost_at is not None
    note = FileChange.objects.get(file_id=log.id)
    assert (note.new, note.why) == (
        "removed",
        "it could not be brought to BETA_DISK and left its dataset before further jobs were made",
    )
    assert Replica.objects.get(file__lfn=log.lfn).state == "deleting"
    assert ReplicaChange.objects.get(what="deleting").storage == "ALPHA_DISK"
    assert faults() == []


def test_a_log_on_its_way_stays_when_the_task_is_retried(queue: ComputingQueue) -> None:
    task = running(parameters("t", nEvents=10, maxAttempt=1, **PRODUCTION))
    leased = take(queue)
    end(leased, failed(leased))
    run_agents()
    command(task.id, "retry", "user:ada")
    run_agents()
    assert Job.objects.filter(status="activated").count() == 1
    assert not FileChange.objects.filter(new="removed").exists()
    assert bring() == 1
    assert visible("t.log") == 1


def test_the_logs_of_a_parent_are_cleaned_before_its_child_gets_jobs(queue: ComputingQueue) -> None:
    running(parameters("parent", nEvents=20, nEventsPerJob=10, maxAttempt=2, **PRODUCTION))
    child = submitted(reading("child", "parent.EVT", parentTaskName="parent", **PRODUCTION))
    leased = take(queue)
    end(leased, failed(leased))
    lose()
    ComputingQueue.objects.update(status="online")
    run_agents()
    for each in ComputingQueue.objects.all():
        run_jobs(each)
    bring()
    lost = File.objects.filter(out_job_id=leased.job_id, type="log", lost_at__isnull=False)
    assert not lost.exists()
    run_agents(4)
    child.refresh_from_db()
    assert child.status == "running", child.error_dialog
    assert lost.exists()
    assert faults() == []
