"""The log of a job that fails reaches its user: registered with its storage, shown by the pages, kept by clean-ups of pilots."""

from __future__ import annotations

import gzip
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from broker_site.foundation.access.credentials import ensure_user
from brokerage.models import Job, JobResult
from brokerage.queries.invariants import look
from brokerage.queries.job_document import job_document
from brokerage.queries.pilots import outcomes
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from tests.builders import grid, parameters, submitted
from tests.flow.steps import BAD, end, mark_storages, run_agents, take
from tests.flow.test_pilots import pilots, run_until_ended
from workqueues.models import CatalogueDataset, CatalogueFile, File, Replica

PROGRAM = """
import sys
print("reading")
raise ValueError(f"no events in {sys.argv[1]}")
"""


@pytest.mark.django_db(transaction=True)
def test_a_user_whose_program_fails_reads_its_whole_output(live_server: LiveServer, tmp_path: Path, client: Client) -> None:
    queues = grid("ALPHA", path=str(tmp_path / "storage"))
    mark_storages(tmp_path)
    software = tmp_path / "software"
    software.mkdir()
    (software / "make_events.py").write_text(PROGRAM)
    task = submitted(parameters("t1", nEvents=10, nEventsPerJob=10, maxAttempt=1))
    with pilots(live_server.url, queues, tmp_path, software):
        assert run_until_ended(["t1"], 30) == {"t1": "failed"}
    job = Job.objects.get(task_id=task.id)
    assert job.result.error_message.split("\n")[0] == "ValueError: no events in --seed (exit code 1)"
    log = File.objects.get(out_job_id=job.id, type="log")
    assert (log.status, File.objects.get(out_job_id=job.id, type="output").status) == ("finished", "failed")
    replica = Replica.objects.get(file__lfn=log.lfn)
    assert (tmp_path / "storage" / "ALPHA" / replica.path).stat().st_size == log.fsize
    assert [f for f in look() if f.violations] == []

    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    page = client.get(f"/jobs/{job.id}/").content.decode().replace("<wbr>", "")
    assert f'href="/jobs/{job.id}/log/"' in page
    assert replica.path in page
    text = client.get(f"/jobs/{job.id}/log/").content.decode()
    for part in ("reading", "Traceback (most recent call last):", "fails: PAYLOAD_EXIT", f"/jobs/{job.id}/outputs/{log.id}/"):
        assert part in text
    answer = client.get(f"/jobs/{job.id}/outputs/{log.id}/")
    assert answer.content == (tmp_path / "storage" / "ALPHA" / replica.path).read_bytes()
    assert answer["Content-Disposition"] == f'attachment; filename="{log.lfn}"'

    (tmp_path / "storage" / "ALPHA").rename(tmp_path / "away")
    assert "The log cannot be shown" in client.get(f"/jobs/{job.id}/log/").content.decode()
    refused = client.get(f"/jobs/{job.id}/outputs/{log.id}/")
    assert refused.status_code == 503
    assert "storage ALPHA_DISK is down" in refused.content.decode()


@pytest.mark.django_db
def test_only_the_log_of_a_failed_job_is_registered_and_only_where_the_job_was_told(client: Client) -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters("t1", nEvents=30, nEventsPerJob=10, maxAttempt=1))
    run_agents()
    ended = []
    for place in ("", "ELSEWHERE", None):
        leased = take(queue)
        wanted = job_document(leased.job_id)["outputs"]
        outputs = [ReportedOutput(o["lfn"], 10, "0000000a", place or o["storage"]) for o in wanted if place is not None]
        end(leased, Report("failed", outputs, error_code="PAYLOAD_EXIT", error_message="x\ny", log_end="all\nof it"))
        ended.append(leased)
    good, elsewhere, without = (leased.job_id for leased in ended)
    assert list(File.objects.filter(status="finished").exclude(out_job_id=None).values_list("out_job_id", "type")) == [
        (good, "log")
    ]
    assert CatalogueFile.objects.filter(dataset__name__in=["t1.log", "t1.EVT"]).count() == 1
    ends = {job_id: JobResult.objects.get(job_id=job_id).log_end for job_id in (good, elsewhere, without)}
    assert ends == {good: "", elsewhere: "all\nof it", without: "all\nof it"}
    told = {entry["job_id"]: entry["outcome"] for entry in outcomes([(e.job_id, e.epoch) for e in ended], "ALPHA")}
    assert told == {good: "finished", elsewhere: "gone", without: "gone"}
    assert [f for f in look() if f.violations] == []
    run_agents(1)
    assert [f for f in look() if f.violations] == []


@pytest.mark.django_db
def test_who_may_not_see_a_job_sees_no_log_and_no_output_of_it(client: Client) -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters("t1", nEvents=10, nEventsPerJob=10))
    run_agents()
    leased = take(queue)
    end(leased, BAD)
    output = File.objects.filter(out_job_id=leased.job_id).latest("id").id
    client.force_login(ensure_user("eve", roles=[("other", "operator")]))
    assert client.get(f"/jobs/{leased.job_id}/log/").status_code == 404
    assert client.get(f"/jobs/{leased.job_id}/outputs/{output}/").status_code == 404
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    assert client.get(f"/jobs/{leased.job_id}/outputs/{output}/").status_code == 503
    assert client.get(f"/jobs/{leased.job_id}/outputs/{output + 1}/").status_code == 404
    assert "No log" in client.get(f"/jobs/{leased.job_id}/log/").content.decode()


@pytest.mark.django_db
def test_a_log_that_unpacks_to_any_size_is_not_shown(client: Client, tmp_path: Path) -> None:
    """A few bytes on storage may stand for a header of gigabytes: the server reads no more than a page can show."""
    (queue,) = grid("ALPHA", path=str(tmp_path / "storage"))
    mark_storages(tmp_path)
    submitted(parameters("t1", nEvents=10, nEventsPerJob=10))
    run_agents()
    leased = take(queue)
    log = next(o for o in job_document(leased.job_id)["outputs"] if o["type"] == "log")
    end(leased, Report("failed", [ReportedOutput(log["lfn"], 10, "0000000a", log["storage"])], error_code="PAYLOAD_EXIT"))
    archive = tmp_path / "storage" / "ALPHA" / Replica.objects.get(file__lfn=log["lfn"]).path
    archive.parent.mkdir(parents=True, exist_ok=True)
    header = tarfile.TarInfo("stdout")
    header.size, header.type = 100_000_000, tarfile.XHDTYPE
    with gzip.open(archive, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(header.size // 1_000_000):
            file.write(bytes(1_000_000))
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    tracemalloc.start()
    text = client.get(f"/jobs/{leased.job_id}/log/").content.decode()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "unpacks to more than" in text
    assert most < 80_000_000


@pytest.mark.django_db
def test_a_log_whose_name_is_registered_with_other_content_adds_no_copy_to_that(client: Client) -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters("t1", nEvents=10, nEventsPerJob=10, maxAttempt=1))
    run_agents()
    leased = take(queue)
    log = next(o for o in job_document(leased.job_id)["outputs"] if o["type"] == "log")
    dataset = CatalogueDataset.objects.get(name="t1.log")
    other = CatalogueFile.objects.create(dataset=dataset, lfn=log["lfn"], fsize=99, checksum="00000063")
    end(leased, Report("failed", [ReportedOutput(log["lfn"], 10, "0000000a", log["storage"])], log_end="the end"))
    assert not Replica.objects.filter(file=other).exists()
    assert not File.objects.filter(out_job_id=leased.job_id, status="finished").exists()
    assert JobResult.objects.get(job_id=leased.job_id).log_end == "the end"
