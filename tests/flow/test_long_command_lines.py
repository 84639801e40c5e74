"""A long text that all jobs of a task have on their command line is stored once, and read whole."""

from __future__ import annotations

import random

import pytest
from django.db import connection
from django.test import Client

from brokerage.models import ComputingQueue, Job, JobSpec
from brokerage.queries.job_document import job_document
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, take
from tests.pages.scene import visitor
from workqueues.models import Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> ComputingQueue:
    (queue,) = grid("ALPHA")
    return queue


def with_text(text: str, name: str = "t1", **more: object) -> Task:
    """A task of four jobs whose command line has a text."""
    params = parameters(name, nEvents=40, nEventsPerJob=10, **more)
    pieces = [{"type": "constant", "value": text[i : i + 20_000]} for i in range(0, len(text), 20_000)]
    task = submitted({**params, "jobParameters": [*pieces, *params["jobParameters"]]})
    run_agents(1)
    return task


def long_text() -> str:
    """A hundred thousand characters that no compression makes small, with what is special to formats and COPY."""
    dice = random.Random(7)
    return ",".join(f"{dice.randrange(10**9):x}%d\\n{{0}}" for _ in range(6_300))[:99_000]


def test_a_long_text_is_stored_once_for_the_task(queue: ComputingQueue) -> None:
    text = long_text()
    task = with_text(text)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), max(pg_column_size(s)) FROM brokerage_jobspec s")
        n, largest = cursor.fetchone()
    assert n == 4
    assert largest < 1_000
    lines = {job_document(spec.job_id)["parameters"] for spec in JobSpec.objects.filter(job__task_id=task.id)}
    assert len(lines) == 4
    for line in lines:
        assert line.startswith(" ".join(text[i : i + 20_000] for i in range(0, len(text), 20_000)) + " --seed ")
        assert "${" not in line


def test_pilot_rest_page_and_admin_have_the_whole_line(queue: ComputingQueue, admin_client: Client) -> None:
    text = "--words " + " ".join(f"word{i}" for i in range(1_000))
    with_text(text)
    line = job_document(take(queue).job_id)["parameters"]
    assert line.startswith(text)
    assert "--seed 1" in line
    job = Job.objects.exclude(status="activated").get()
    client = Client()
    client.force_login(visitor())
    assert client.get(f"/api/v1/jobs/{job.id}/").json()["spec"]["job_parameters"] == line
    page = client.get(f"/jobs/{job.id}/").content.decode()
    assert text in page
    assert "--seed 1" in page
    assert text in admin_client.get(f"/admin/brokerage/jobspec/{job.id}/change/").content.decode()


def test_a_short_line_and_one_of_a_release_before_are_stored_whole(queue: ComputingQueue) -> None:
    task = with_text("--short")
    spec = JobSpec.objects.filter(job__task_id=task.id).earliest("job_id")
    assert job_document(spec.job_id)["parameters"] == spec.job_parameters
    assert spec.job_parameters.startswith("--short ")
    before = "--old " + "x" * 5_000
    JobSpec.objects.filter(job_id=spec.job_id).update(job_parameters=before)
    assert job_document(spec.job_id)["parameters"] == before
