"""The connection that pages read through: it cannot write, and a statement that runs too long is told as such."""

from __future__ import annotations

import json

import pytest
from django.db import InternalError, connections
from django.test import Client
from pytest_django import Settings

from broker_site.foundation.agency.models import Agent
from monitoring.queries.database import rows
from monitoring.views import lists
from tests.pages.scene import visitor

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")


@pytest.fixture
def reading(settings: Settings) -> None:
    """Read through the connection of production instead of that of the tests."""
    settings.MONITORING_DATABASE = "monitoring"


@pytest.mark.usefixtures("reading")
def test_pages_read_through_a_connection_that_refuses_to_write() -> None:
    client = Client()
    client.force_login(visitor())
    for address in ("/", "/tasks/", "/jobs.json", "/queues/", "/agents/"):
        assert client.get(address).status_code == 200
    with pytest.raises(InternalError, match="read-only"):
        Agent.objects.using("monitoring").create(name="x")


@pytest.mark.usefixtures("reading")
def test_a_statement_that_runs_too_long_asks_for_a_narrower_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    with connections["monitoring"].cursor() as cursor:
        cursor.execute("SET statement_timeout = 50")
    monkeypatch.setattr(lists.AGENTS.__class__, "page", lambda *_: rows("SELECT pg_sleep(2)"))
    client = Client()
    client.force_login(visitor())
    try:
        page, data = client.get("/agents/"), client.get("/agents.json")
    finally:
        connections["monitoring"].close()
    assert (page.status_code, data.status_code) == (503, 503)
    assert "Narrow the filter" in page.content.decode()
    assert json.loads(data.content)["title"] == "Too much to read"
