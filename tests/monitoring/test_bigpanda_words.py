"""Addresses with the words of BigPanDA show what they did there, as pages and as data, and lead to our own words."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.kernel import clock
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def tasks(client: Client) -> tuple[Task, Task]:
    """One whose status and jobs' changed just now, and one of two days ago."""
    grid("ALPHA")
    old = submitted(parameters("t-old", nEvents=10, nEventsPerJob=10))
    new = submitted(parameters("t-new", nEvents=10, nEventsPerJob=10))
    run_agents()
    for rows in (Task.objects.filter(id=old.id), Job.objects.filter(task_id=old.id)):
        rows.update(status_since=clock.now() - timedelta(days=2))
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    return old, new


def test_hours_are_the_last_ones_on_pages_and_in_data_alike(client: Client, tasks: tuple[Task, Task]) -> None:
    old, new = tasks
    for address in ("/tasks.json", "/api/v1/tasks/"):
        for hours, wanted in (("24", {new.id}), ("72", {new.id, old.id})):
            answer = client.get(address, {"hours": hours})
            assert answer.status_code == 200, answer.content
            body = answer.json()
            assert {row["id"] for row in body.get("results", body.get("rows", ()))} == wanted, (address, hours)
    assert "t-old" not in client.get("/tasks.csv?hours=24").getvalue().decode()
    page = client.get("/tasks/?hours=24", follow=True)
    assert page.redirect_chain
    assert "status_since=-24h" in page.redirect_chain[-1][0]
    shown = page.content.decode().replace("<wbr>", "")
    assert "t-new" in shown
    assert "t-old" not in shown
    jobs = client.get("/jobs.json", {"hours": "24", "jeditaskid": str(old.id)}).json()
    assert jobs.get("results", jobs.get("rows")) == []


@pytest.mark.parametrize("hours", ["abc", "-5", "1.5", "1,2", "24h", "9" * 30])
def test_hours_that_are_no_number_are_refused(client: Client, tasks: tuple[Task, Task], hours: str) -> None:
    for address in ("/tasks.json", "/api/v1/jobs/"):
        answer = client.get(address, {"hours": hours})
        assert answer.status_code == 400, (address, hours)
        assert [error["field"] for error in answer.json()["errors"]] == ["status_since"]
    assert client.get("/tasks/", {"hours": hours}, follow=True).status_code == 400
