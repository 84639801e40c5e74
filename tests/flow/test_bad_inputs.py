"""Inputs that jobs cannot read (decision D9), leases that run out, reports that come late, twice or for nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.kernel import clock
from brokerage.ledger.expiry import expire_leases
from brokerage.ledger.handing_out import handed_out_before
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.ledger.lease import lease
from brokerage.ledger.settle import settle_job
from brokerage.models import Job, JobInput, JobResult
from brokerage.queries.waiting import WAITING
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from tests.builders import catalogue_dataset, grid, parameters, pilot, reading, submitted
from tests.flow.steps import BAD, end, good, let_confirm, mark_storages, run_agents, run_jobs, take, try_take
from tests.monitoring.answers import counted
from workqueues.ledger.moves import Stale
from workqueues.models import CatalogueFile, Dataset, File, FileChange

pytestmark = pytest.mark.django_db

PRODUCTION = {"prodSourceLabel": "managed"}
"""Unlike one of a user, such a task goes back to a queue where a job of it was closed."""


def stored(folder: Path, lfn: str, content: bytes) -> None:
    path = folder / "ALPHA" / lfn
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def with_files_on_disk(folder: Path, n: int) -> None:
    """The dataset in.data with intact files on disk: 1000 bytes of zeros have the adler32 03e80001."""
    catalogue_dataset("in.data", n)
    CatalogueFile.objects.update(checksum="03e80001")
    for lfn in CatalogueFile.objects.values_list("lfn", flat=True):
        stored(folder, lfn, bytes(1000))


def test_a_file_that_vanished_becomes_lost_once_the_catalogue_confirms_and_the_task_goes_on_without_it(tmp_path: Path) -> None:
    (queue,) = grid("ALPHA", path=str(tmp_path))
    with_files_on_disk(tmp_path, 4)
    mark_storages(tmp_path)
    task = submitted(reading("t", "in.data", **PRODUCTION))
    run_agents()
    (tmp_path / "ALPHA" / "in.data.000000").unlink()
    held = take(queue)
    assert end(held, Report("failed", missing_inputs=["in.data.000000"], error_code="INPUT")) == "closed"
    assert Job.objects.get(id=held.job_id).sub_status == "input_missing"
    assert File.objects.get(lfn="in.data.000000").held == "reported missing at ALPHA"
    run_agents()
    missing = File.objects.get(lfn="in.data.000000")
    assert (missing.status, missing.absent_since is not None) == ("ready", True), "one look is not enough"
    let_confirm()
    run_agents()
    assert File.objects.get(lfn="in.data.000000").status == "lost"
    dataset = Dataset.objects.get(type="input")
    assert (dataset.n_files, dataset.n_files_missing) == (4, 1)
    run_jobs(queue)
    run_agents()
    run_jobs(queue)
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.progress) == ("finished", 75)
    assert FileChange.objects.get(new="lost").why == "reported missing at ALPHA; confirmed"


def test_a_file_that_is_there_after_all_gets_another_try_and_that_was_no_failure(tmp_path: Path) -> None:
    (queue,) = grid("ALPHA", path=str(tmp_path))
    with_files_on_disk(tmp_path, 2)
    submitted(reading("t", "in.data", **PRODUCTION))
    run_agents()
    end(take(queue), Report("failed", missing_inputs=["in.data.000000"], error_code="INPUT"))
    run_agents()
    assert set(File.objects.filter(type="input").values_list("status", "attempt_nr", "failed_attempt", "held")) == {
        ("running", 1, 0, "")
    }


def test_the_word_of_two_queues_counts_more_than_the_catalogues(tmp_path: Path) -> None:
    alpha, beta = grid("ALPHA", "BETA", path=str(tmp_path))
    with_files_on_disk(tmp_path, 2)
    mark_storages(tmp_path)
    submitted(reading("t", "in.data", site="ALPHA"))
    run_agents()
    end(take(alpha), Report("failed", missing_inputs=["in.data.000000"], error_code="INPUT"))
    FileChange.objects.filter(new="held").update(why="reported missing at BETA")
    run_agents()
    end(take(alpha), Report("failed", missing_inputs=["in.data.000000"], error_code="INPUT"))
    run_agents()
    let_confirm()
    run_agents()
    assert File.objects.get(lfn="in.data.000000").status == "lost"
    assert File.objects.get(lfn="in.data.000001").status == "running"
    assert try_take(beta) is None


def test_asking_about_many_files_takes_no_more_queries_than_about_few(tmp_path: Path) -> None:
    grid("ALPHA", path=str(tmp_path))
    with_files_on_disk(tmp_path, 12)
    mark_storages(tmp_path)
    task = submitted(reading("t", "in.data", **PRODUCTION))
    run_agents(1, ["refine", "feed", "assign"])
    counts, now = [], clock.now()
    for numbers in ((0, 1), range(2, 12)):
        lfns = [f"in.data.{i:06d}" for i in numbers]
        for lfn in lfns[::2]:
            (tmp_path / "ALPHA" / lfn).unlink()
        File.objects.filter(task_id=task.id, lfn__in=lfns).update(
            held="reported missing at ALPHA", look_due=now - timedelta(hours=1), absent_since=now - timedelta(hours=1)
        )
        with CaptureQueriesContext(connection) as seen:
            run_agents(1, ["feed"])
        counts.append(counted(seen))
    assert counts[0] == counts[1]
    dataset = Dataset.objects.get(task_id=task.id, type="input")
    assert (dataset.n_files, dataset.n_files_to_be_used, dataset.n_files_missing) == (12, 6, 6)


def test_a_corrupt_file_becomes_broken(tmp_path: Path) -> None:
    (queue,) = grid("ALPHA", path=str(tmp_path))
    with_files_on_disk(tmp_path, 2)
    mark_storages(tmp_path)
    stored(tmp_path, "in.data.000001", b"x" * 1000)
    submitted(reading("t", "in.data"))
    run_agents()
    end(take(queue), Report("failed", corrupt_inputs=["in.data.000001"], error_code="INPUT"))
    run_agents()
    let_confirm()
    run_agents()
    assert File.objects.get(lfn="in.data.000001").status == "broken"


def test_a_lost_lease_fails_the_job_and_its_late_report_is_refused_and_changes_nothing() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10))
    run_agents()
    held = take(queue, lease_s=-1)
    assert expire_leases("agent:reap", 10) == 1
    job = Job.objects.get(id=held.job_id)
    assert (job.status, job.sub_status, job.epoch) == ("failed", "lost_heartbeat", held.epoch + 1)
    with pytest.raises(Stale):
        end(held)
    assert beat([SignOfLife(held.job_id, held.epoch)]) == [None]
    assert not JobInput.objects.filter(status="used").exists()
    assert not CatalogueFile.objects.exists()


def test_a_repeated_report_gets_the_same_answer_and_counts_once() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10))
    run_agents()
    held = take(queue)
    report = good(held.job_id)
    assert end(held, report) == end(held, report) == end(held, BAD) == "finished"
    assert JobResult.objects.count() == 1
    assert Dataset.objects.get(type="output").n_files_finished == 1


def test_a_report_for_a_job_that_does_not_exist_is_stale() -> None:
    with pytest.raises(Stale):
        settle_job(999, 1, BAD, "pilot")


def test_a_finished_report_without_an_output_fails_the_job() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10))
    run_agents()
    held = take(queue)
    partial = Report("finished", good(held.job_id).outputs[:1])
    assert end(held, partial) == "failed"
    assert JobResult.objects.get().error_code == "OUTPUT_MISSING"
    assert not CatalogueFile.objects.exists()


def test_an_output_that_nobody_asked_for_fails_the_job() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10))
    run_agents()
    held = take(queue)
    more = Report("finished", [*good(held.job_id).outputs, ReportedOutput("other", 1, "00000001", "ALPHA_DISK")])
    assert end(held, more) == "failed"
    assert JobResult.objects.get().error_code == "OUTPUT_UNKNOWN"


def test_a_repeated_ask_gets_the_same_job_again() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=20))
    run_agents()
    holder, request = pilot(queue, "s"), uuid4()
    groups = [w.id for w in WAITING.of(queue.id, fresh=True).rows]
    first = lease(groups, holder, request, 60)
    assert first is not None
    (again,) = handed_out_before(holder, request)
    assert (again.document["id"], again.epoch) == (first.job_id, first.epoch)
    assert handed_out_before(holder, uuid4()) == []
