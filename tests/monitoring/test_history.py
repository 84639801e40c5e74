"""What queues, shares, users and tasks did over time: pages, JSON and CSV say what the histories of the jobs say."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from brokerage.models import Job, JobChange
from brokerage.states import JOB
from tests.api.test_series import lived
from tests.builders import grid
from tests.monitoring.answers import counted, text
from tests.pages.scene import visitor

pytestmark = pytest.mark.django_db(transaction=True)

MOST = 12
"""Statements of a page over time."""


@pytest.fixture
def client() -> Client:
    made = Client()
    made.force_login(visitor())
    return made


def data(client: Client, address: str) -> dict[str, Any]:
    answer = client.get(address)
    assert answer.status_code == 200, text(answer)
    found: dict[str, Any] = json.loads(answer.content)
    return found


def lines(client: Client, address: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text(client.get(address)))))


def page(client: Client, address: str) -> str:
    with CaptureQueriesContext(connection) as statements:
        answer = client.get(address)
    assert answer.status_code == 200, text(answer)
    assert counted(statements) <= MOST, address
    return text(answer)


def moved(what: str, **jobs: object) -> int:
    """How many jobs made this move."""
    return JobChange.objects.filter(new=what, job_id__in=Job.objects.filter(**jobs).values("id")).count()


def test_a_queue_over_time_is_what_its_jobs_did(client: Client) -> None:
    lived(grid("ALPHA", "BETA"), random.Random(3))
    at = {"computing_queue__name": "ALPHA", "spec__vo": "demo"}
    found = data(client, "/queues/ALPHA/plots.json")
    for what in ("finished", "failed"):
        assert sum(step[what] for step in found["rows"]) == moved(what, **at)
    alive = Counter(Job.objects.filter(ended_at=None, **at).values_list("status", flat=True))
    assert found["rows"][-1]["waiting"] == sum(alive[state] for state in JOB.waiting)
    assert [row["at"] for row in lines(client, "/queues/ALPHA/plots.csv")] == [row["at"] for row in found["rows"]]
    shown = page(client, "/queues/ALPHA/plots/?window=7d")
    assert f"finished {moved('finished', **at)}, failed {moved('failed', **at)}." in shown
    assert "jobbroker.NQUEUELIMITSITE" in shown
    errors = data(client, "/errors.json?queue=ALPHA")["rows"]
    assert sum(row["jobs"] for row in errors) == moved("failed", **at)
    assert f'href="/errors/?window=7d#error-{errors[0]["id"]}"' in shown
    assert client.get("/queues/ALPHA/plots.json?window=1y").status_code == 400
    assert "is no window" in page(client, "/queues/ALPHA/plots/?window=1y")
    assert client.get("/queues/NONE/plots/").status_code == 404
