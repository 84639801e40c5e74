"""Submission over REST: names of places that the task wishes for and that nobody has are refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage.models import Site
from tests.api.people import Person
from tests.builders import grid, parameters
from workqueues.models import GlobalShare, Task, WorkQueue

pytestmark = pytest.mark.django_db


@pytest.fixture
def places() -> None:
    """Queues ALPHA and BETA, the nucleus CERN, the shares Production (with the leaf MC) and Analysis, the work queue of users."""
    grid("ALPHA", "BETA")
    Site.objects.create(name="CERN", nucleus=True)
    production = GlobalShare.objects.create(name="Production", vo="demo", value=80)
    GlobalShare.objects.create(name="MC", vo="demo", parent=production, value=80)
    GlobalShare.objects.create(name="Analysis", vo="demo", value=20)
    GlobalShare.objects.create(name="Elsewhere", vo="other", value=1)
    WorkQueue.objects.create(queue_name="users", queue_type="user", vo="demo", queue_order=1)
    WorkQueue.objects.create(queue_name="simulation", queue_type="managed", vo="demo", queue_order=2)


UNKNOWN = [
    ("nucleus", "CERM", "the grid has no nucleus CERM; the nearest name is CERN"),
    ("nucleus", "SITE_ALPHA", "the grid has no nucleus SITE_ALPHA"),
    ("gshare", "Analisys", "the VO has no leaf share Analisys; the nearest name is Analysis"),
    ("gshare", "Production", "the VO has no leaf share Production"),
    ("gshare", "Elsewhere", "the VO has no leaf share Elsewhere"),
    ("workQueueName", "user", "no work queue user for this VO and prodSourceLabel; the nearest name is users"),
    ("workQueueName", "simulation", "no work queue simulation for this VO and prodSourceLabel"),
    ("site", "ALPHA,BETTA", "the grid has no queue or site BETTA; the nearest name is BETA"),
    ("site", "GAMMA*", "the grid has no queue or site GAMMA*"),
]


@pytest.mark.parametrize(("field", "name", "message"), UNKNOWN, ids=[f"{field}-{name}" for field, name, _ in UNKNOWN])
def test_a_name_that_nobody_has_is_refused_with_the_nearest_one(
    ada: Person, places: None, field: str, name: str, message: str
) -> None:
    answer = ada.submit(parameters() | {field: name})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": field, "rule": "exists", "message": message}]
    assert not Task.objects.exists()


KNOWN = [
    {"nucleus": "CERN"},
    {"gshare": "Analysis"},
    {"gshare": "Undefined"},
    {"workQueueName": "users"},
    {"workQueueName": "default"},
    {"site": "ALPHA, SITE_BETA"},
    {"site": "ALPHA/MCORE"},
    {"site": "A*"},
]


@pytest.mark.parametrize("wish", KNOWN, ids=str)
def test_a_name_that_somebody_has_is_accepted(ada: Person, places: None, wish: dict[str, Any]) -> None:
    assert ada.submit(parameters() | wish).status_code == 201


def test_without_a_grid_nobody_can_say_which_queue_or_nucleus_there_will_be(ada: Person, db: None) -> None:
    assert ada.submit(parameters() | {"nucleus": "CERN", "site": "ALPHA"}).status_code == 201


def test_names_are_told_together_with_all_that_is_wrong(ada: Person, places: None) -> None:
    answer = ada.submit(parameters(taskPriority="high", nucleus="CERM", gshare="none", site="X"))
    assert {e["field"] for e in answer.json()["errors"]} == {"taskPriority", "nucleus", "gshare", "site"}
