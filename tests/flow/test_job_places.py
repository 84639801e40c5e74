"""Where a job is told to read and write: at storage of its own site, by directory or by signed address."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

import pytest

from brokerage.models import ComputingQueue, Job, JobSpec, QueueStorage, StorageEndpoint
from brokerage.pilot.signed_urls import Grant, NotGranted, read_grant
from brokerage.queries.job_document import job_document
from brokerage.queries.signed_places import storage_key
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import run_agents, take
from workqueues.models import CatalogueFile, Replica

pytestmark = pytest.mark.django_db

URL = "http://storage.example:8443/alpha"


@pytest.fixture
def queue() -> ComputingQueue:
    alpha, _ = grid("ALPHA", "BETA", path="/data")
    return alpha


def leased_job(queue: ComputingQueue) -> int:
    """A job that reads two files which have copies at both sites."""
    catalogue_dataset("in.data", 2)
    Replica.objects.bulk_create(Replica(file=file, storage="BETA_DISK") for file in CatalogueFile.objects.all())
    submitted(reading("t", "in.data", site=queue.name))
    run_agents()
    return take(queue).job_id


def sources(document: dict[str, Any]) -> list[list[str]]:
    """The storages of each input, in the order in which the pilot tries them."""
    return [[source["storage"] for source in entry["sources"]] for entry in document["inputs"]]


def allowed(method: str, url: str, number: int = 1) -> Grant:
    """What an address allows, as the server of ALPHA_DISK reads it."""
    parts = urlsplit(url)
    assert url.startswith(f"{URL}/")
    return read_grant(method, parts.path.removeprefix("/alpha/"), parts.query, [storage_key("ALPHA_DISK", number)], time.time())


def test_a_job_reads_at_its_own_site_only(queue: ComputingQueue) -> None:
    job = leased_job(queue)
    assert sources(job_document(job)) == [["ALPHA_DISK"], ["ALPHA_DISK"]]
    Replica.objects.filter(storage="ALPHA_DISK").update(state="bad")
    assert sources(job_document(job)) == [[], []], "a copy that is not available is none"
    QueueStorage.objects.create(queue=queue, storage_id="BETA_DISK", access="read_lan", position=2)
    assert sources(job_document(job)) == [["BETA_DISK"], ["BETA_DISK"]], "the grid says that the queue reads it"


def test_a_job_that_reads_over_the_network_is_told_of_copies_elsewhere_too(queue: ComputingQueue) -> None:
    job = leased_job(queue)
    JobSpec.objects.filter(job_id=job).update(reads_wan=True)
    assert sources(job_document(job)) == [["ALPHA_DISK", "BETA_DISK"]] * 2
    StorageEndpoint.objects.filter(name="BETA_DISK").update(status={"read_wan": "OFF"})
    assert sources(job_document(job)) == [["ALPHA_DISK"]] * 2
    StorageEndpoint.objects.filter(name="BETA_DISK").update(status={}, root_state="down")
    assert sources(job_document(job)) == [["ALPHA_DISK"]] * 2


def test_addresses_are_signed_for_this_attempt_and_these_files(queue: ComputingQueue) -> None:
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(url=URL, path="")
    job = leased_job(queue)
    spec, epoch = JobSpec.objects.get(job_id=job), Job.objects.get(id=job).epoch
    document = job_document(job)
    first = document["inputs"][0]["sources"][0]
    assert set(first) == {"storage", "url"}, "a server is no directory"
    read = allowed("GET", first["url"])
    assert (read.name, read.job, read.epoch) == ("in.data.000000", job, epoch)
    assert read.expires > time.time() + 86_400 + document["walltime_s"] - 60
    output = next(entry for entry in document["outputs"] if entry["type"] == "output")
    write, remove = allowed("PUT", output["url"]), allowed("DELETE", output["remove_url"])
    assert write.name == remove.name
    assert write.name.endswith(f"/{output['lfn']}")
    assert (write.job, write.epoch, remove.job, remove.epoch) == (job, epoch, job, epoch)
    assert not spec.disk_mb or write.size <= max(spec.disk_mb, 10) * 10**6
    assert remove.expires > write.expires
    with pytest.raises(NotGranted):
        allowed("PUT", first["url"])
    with pytest.raises(NotGranted):
        allowed("GET", first["url"], number=2)


def test_an_endpoint_with_both_is_told_with_both(queue: ComputingQueue) -> None:
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(url=URL)
    document = job_document(leased_job(queue))
    for entry in (document["inputs"][0]["sources"][0], document["outputs"][0]):
        assert entry["root"] == "/data/ALPHA"
        assert entry["path"].startswith("/data/ALPHA/")
        assert entry["url"].startswith(f"{URL}/")


def test_each_endpoint_and_each_number_has_a_key_of_its_own() -> None:
    keys = {storage_key("A", 1), storage_key("A", 2), storage_key("B", 1), storage_key("A\n1", 1)}
    assert len(keys) == 4
    assert all(len(key) == 64 for key in keys)
