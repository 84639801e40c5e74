"""Closing a dataset by REST and at the command line: who may, what is refused, and what is kept of it."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from broker_site.foundation.access.models import Audit
from tests.api.people import person
from tests.builders import catalogue_dataset, grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import CatalogueDataset

pytestmark = pytest.mark.django_db

NAMED = {"vo": "demo", "name": "in.data"}


@pytest.fixture(autouse=True)
def dataset() -> None:
    catalogue_dataset("in.data", 1, owner="ada")
    CatalogueDataset.objects.update(state="open")


def state() -> str:
    return CatalogueDataset.objects.get(name="in.data").state


def test_its_owner_and_an_operator_close_a_dataset_and_it_stays_closed() -> None:
    ada, olga = person("ada", ("demo", "submitter")), person("olga", ("demo", "operator"))
    answer = ada.post("datasets/close/", NAMED)
    assert (answer.status_code, answer.json()) == (200, {**NAMED, "owner": "ada", "state": "closed"})
    assert olga.post("datasets/close/", NAMED).json()["state"] == state() == "closed"
    assert list(Audit.objects.filter(act="dataset.close").values_list("who", "object")) == [("ada", "dataset in.data")]


def test_others_may_not_and_who_is_not_of_the_vo_learns_nothing() -> None:
    bob, gus = person("bob", ("demo", "submitter")), person("gus", ("guests", "operator"))
    assert bob.post("datasets/close/", NAMED).status_code == 403
    assert gus.post("datasets/close/", NAMED).status_code == 404
    assert bob.post("datasets/close/", {**NAMED, "name": "none"}).status_code == 404
    assert bob.post("datasets/close/", {"vo": "demo"}).status_code == 422
    assert state() == "open"


def test_a_dataset_that_a_task_writes_is_closed_by_the_end_of_that_task() -> None:
    grid()
    submitted(parameters("p"))
    run_agents(1, ("refine", "feed"))
    answer = person("olga", ("demo", "operator")).post("datasets/close/", {"vo": "demo", "name": "p.EVT"})
    assert answer.status_code == 409
    assert "writes to p.EVT; it is closed when that ends" in answer.json()["detail"]
    with pytest.raises(CommandError, match=r"writes to p\.EVT"):
        call_command("catalogue", "close", "p.EVT", "--vo", "demo")


def test_an_operator_closes_datasets_at_the_command_line() -> None:
    with pytest.raises(CommandError, match="VO demo has no dataset none; nothing was closed"):
        call_command("catalogue", "close", "in.data", "none", "--vo", "demo")
    assert state() == "open"
    out = StringIO()
    call_command("catalogue", "close", "in.data", "--vo", "demo", stdout=out)
    assert out.getvalue() == "in.data is closed\n"
    assert state() == "closed"
