"""From a submitted task to finished files, agent by agent, with the ledger's verbs in place of real pilots."""

from __future__ import annotations

from uuid import uuid4

import pytest

from broker_site.agency.run import run_agent
from brokerage.ledger.lease import advance, lease
from brokerage.ledger.settle import settle_job
from brokerage.models import Job, JobRetryHistory
from brokerage.queries.offer import job_document
from brokerage.queries.waiting import WAITING
from brokerage.rules.settlement import Report, ReportedOutput
from tests.builders import catalogue_dataset, grid, parameters, pilot, reading, submitted
from workqueues.models import Dataset, File

pytestmark = pytest.mark.django_db(transaction=True)


def run_agents() -> None:
    for name in ("refine", "feed", "assign", "generate", "command", "reap", "finish", "finish"):
        run_agent(name, looked=True)


def run_jobs(queue, end="finished") -> int:
    """Lease and settle every ready job of the queue."""
    holder, n = pilot(queue, str(uuid4())), 0
    while True:
        groups = [w.id for w in WAITING.of(queue.id, queue.name, fresh=True)]
        leased = lease(groups, holder, uuid4(), 60)
        if leased is None:
            return n
        n += 1
        assert advance(leased.job_id, leased.epoch, "running", ["sent", "starting"], "pilot")
        document = job_document(leased.job_id)
        outputs = [ReportedOutput(o["lfn"], 10, "0000000a", o["storage"]) for o in document["outputs"]]
        settle_job(leased.job_id, leased.epoch, Report(end, outputs if end == "finished" else ()), "pilot")


def test_a_task_without_input_becomes_jobs_with_their_own_seeds_and_numbers_and_ends_done():
    (queue,) = grid("ALPHA")
    task = submitted(parameters(nEvents=40, nEventsPerJob=10))
    run_agents()
    task.refresh_from_db()
    assert task.status == "running", task.error_dialog
    assert Job.objects.filter(status="activated").count() == 4
    params = sorted(job_document(j.id)["parameters"] for j in Job.objects.all())
    assert params == [f"--seed {i} --run {i} --out=t1.EVT.{i:06d}.txt" for i in range(1, 5)]
    assert run_jobs(queue) == 4
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.progress) == ("done", 100)
    assert set(Dataset.objects.values_list("status", flat=True)) == {"done"}
    assert set(File.objects.values_list("status", flat=True)) == {"finished"}


def test_a_failed_job_gives_its_files_back_and_the_task_finishes_with_what_worked():
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t2", "in.data", maxAttempt=2))
    run_agents()
    assert run_jobs(queue, end="failed") == 2
    run_agents()
    assert File.objects.filter(type="input", status="running", attempt_nr=1).count() == 4
    assert run_jobs(queue, end="failed") == 2
    run_agents()
    task.refresh_from_db()
    assert task.status == "failed"
    assert JobRetryHistory.objects.count() == 2
