"""The demo campaign with real pilots against the real server: HTTP, processes, files, checksums; only the beat is by hand."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.roof.demo_life import unshown
from brokerage.models import ComputingQueue, Job, QueueStorage, StorageEndpoint
from brokerage.queries.signed_places import storage_key
from examples.demo.campaign import FILES_OF_EVENTS, LINES_TO_MERGE, SOFTWARE, life_tasks, prefix, tasks
from examples.demo.check import Registered, check_histogram, check_lines, check_storage
from tests.builders import grid, submitted
from tests.flow.steps import mark_storages
from tests.storage_server.serving import Serving
from workqueues.models import CatalogueFile, Replica, Task

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]
EVENTS = 200
AGENTS = ("refine", "feed", "assign", "generate", "assess", "merge", "command", "wake", "reap", "finish", "storage")


@contextmanager
def pilots(
    url: str, queues: list[ComputingQueue], folder: Path, software: Path = SOFTWARE
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """One real pilot for each queue, for the time of the block."""
    started = []
    for queue in queues:
        secret = folder / f"{queue.name}.secret"
        secret.write_text(issue_enrolment(queue.name, site=queue.site_id, note="test").text)
        work = folder / "work" / queue.name / "1"
        command = [sys.executable, "-m", "brokerage.pilot", "--server", url, "--queue", queue.name, "--slot", f"{queue.name}-1"]
        command += ["--enrolment-file", str(secret), "--work", str(work), "--software", str(software)]
        with (folder / f"{queue.name}.log").open("ab") as log:
            started.append(subprocess.Popen(command, cwd=ROOT, stderr=log))
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(10)


def run_until_ended(names: list[str], seconds: float) -> dict[str, str]:
    """Run the agents again and again until these tasks have ended; name -> status."""
    limit = time.monotonic() + seconds
    while True:
        for name in AGENTS:
            run_agent(name, looked=True)
        found = dict(Task.objects.filter(task_name__in=names).values_list("task_name", "status"))
        if not set(found.values()) - {"done", "finished", "failed", "broken", "aborted", "exhausted"} or time.monotonic() > limit:
            return found
        time.sleep(0.1)


def small(document: dict[str, Any]) -> dict[str, Any]:
    """The task with fewer events."""
    if "nEvents" in document:
        document |= {"nEvents": EVENTS * FILES_OF_EVENTS, "nEventsPerJob": EVENTS}
    return document


def registered(run: str) -> list[Registered]:
    """What the catalogue has of a run."""
    files = {f.pk: f for f in CatalogueFile.objects.filter(lfn__startswith=prefix(run))}
    places = Replica.objects.filter(file_id__in=files).values_list("file_id", "storage", "path")
    return [Registered(files[i].lfn, files[i].fsize or 0, files[i].checksum, storage, path) for i, storage, path in places]


def one_site(folder: Path) -> list[ComputingQueue]:
    """Two queues of one site that read and write the same storage."""
    grid("ALPHA", "BETA", path=str(folder))
    ComputingQueue.objects.update(site="SITE_ALPHA")
    QueueStorage.objects.update(storage="ALPHA_DISK")
    StorageEndpoint.objects.filter(name="BETA_DISK").delete()
    return list(ComputingQueue.objects.order_by("name"))


@pytest.fixture(params=["directory", "server"])
def queues(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[ComputingQueue]]:
    """The same, with the storage reached as a directory, or by its server alone."""
    made = one_site(tmp_path / "storage")
    mark_storages(tmp_path)
    if request.param == "directory":
        yield made
        return
    server = Serving(tmp_path, "ALPHA_DISK", root=tmp_path / "storage" / "ALPHA", key=storage_key("ALPHA_DISK", 1))
    StorageEndpoint.objects.update(url=server.base, path="")
    yield made
    server.stop()


def test_the_demo_campaign_ends_done_with_every_file_where_it_is_registered(
    live_server: LiveServer, tmp_path: Path, queues: list[ComputingQueue]
) -> None:
    set_override("jobbroker", "RETRY_PAUSE", 0.1, who="test", why="a job fails on purpose")
    documents = [small(document) for document in tasks("t1")]
    names = [str(document["taskName"]) for document in documents]
    with pilots(live_server.url, queues, tmp_path):
        parent = None
        for document in documents:
            task = submitted(document)
            Task.objects.filter(id=task.id).update(parent_tid=parent)
            parent = task.id
        found = run_until_ended(names, 60)
    folders = {"ALPHA_DISK": tmp_path / "storage" / "ALPHA"}
    why = list(Task.objects.values_list("task_name", "status", "error_dialog"))
    assert found == dict.fromkeys(names, "done"), (why, (tmp_path / "ALPHA.log").read_text()[-2000:])
    files = registered("t1")
    failed = Job.objects.filter(status="failed")
    assert len(files) == 2 * (20 + 10 + 1) + failed.count(), "one output and one log a job, and the log of each that failed"
    assert check_storage(files, {name: folder for name, folder in folders.items() if folder.exists()}, prefix("t1")) == []
    (merged,) = [entry for entry in files if ".HIST." in entry.lfn]
    histogram = json.loads((folders[merged.storage] / merged.place).read_bytes())
    assert check_histogram(histogram, FILES_OF_EVENTS, EVENTS) == []
    assert all(job.placed_at.name == "BETA" for job in failed)


def test_real_pilots_climb_the_memory_ladder_and_merge_what_they_made(
    live_server: LiveServer, tmp_path: Path, queues: list[ComputingQueue]
) -> None:
    set_override("jobbroker", "RETRY_PAUSE", 0.1, who="test", why="scouts run out of memory")
    documents = [document for document in life_tasks("t2") if document["taskName"].endswith((".hungry", ".merged"))]
    hungry, merged = (submitted(document) for document in documents)
    with pilots(live_server.url, queues, tmp_path):
        found = run_until_ended([str(document["taskName"]) for document in documents], 90)
    why = list(Task.objects.values_list("task_name", "status", "error_dialog"))
    assert set(found.values()) == {"done"}, (why, (tmp_path / "ALPHA.log").read_text()[-2000:])
    assert unshown([hungry.id, merged.id]) == []
    folders = {"ALPHA_DISK": tmp_path / "storage" / "ALPHA"}
    files = registered("t2")
    assert check_storage(files, folders, prefix("t2")) == []
    assert check_lines([entry for entry in files if ".MERGED." in entry.lfn], folders, LINES_TO_MERGE) == []
