"""Submission over REST: a place that nobody has is refused at once: the task would wait for it, or the wish be passed over."""

from __future__ import annotations

import pytest

from brokerage.models import ComputingQueue, Site
from tests.api.people import Person
from tests.builders import grid, parameters
from workqueues.models import Task

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CERM", "the grid has no nucleus CERM; the nearest name is CERN"),
        ("SITE_ALPHA", "the grid has no nucleus SITE_ALPHA"),
    ],
)
def test_a_nucleus_that_is_not_there_is_refused_with_the_nearest_one(ada: Person, name: str, message: str) -> None:
    grid("ALPHA")
    Site.objects.create(name="CERN", nucleus=True)
    answer = ada.submit(parameters(nucleus=name))
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "nucleus", "rule": "exists", "message": message}]
    assert not Task.objects.exists()


def test_a_nucleus_that_is_there_is_accepted(ada: Person) -> None:
    grid("ALPHA")
    Site.objects.create(name="CERN", nucleus=True)
    assert ada.submit(parameters(nucleus="CERN")).status_code == 201


def test_without_a_grid_nobody_can_say_which_nucleus_there_will_be(ada: Person) -> None:
    assert ada.submit(parameters(nucleus="CERN")).status_code == 201


def test_it_is_told_together_with_all_that_is_wrong(ada: Person) -> None:
    grid("ALPHA")
    answer = ada.submit(parameters(taskPriority="high", nucleus="CERM"))
    assert {e["field"] for e in answer.json()["errors"]} == {"taskPriority", "nucleus"}


def test_a_destination_that_is_not_there_is_refused_with_the_nearest_one(ada: Person) -> None:
    grid("ALPHA")
    params = parameters(destination="ALPHA_DSK")
    params["jobParameters"][2]["destination"] = "NOWHERE"
    answer = ada.submit(params)
    assert answer.status_code == 422
    assert {(e["field"], e["rule"], e["message"]) for e in answer.json()["errors"]} == {
        ("destination", "exists", "the grid has no storage endpoint ALPHA_DSK; the nearest name is ALPHA_DISK"),
        ("jobParameters[2].destination", "exists", "the grid has no storage endpoint NOWHERE"),
    }
    assert not Task.objects.exists()
    assert ada.submit(parameters(destination="ALPHA_DISK")).status_code == 201


@pytest.mark.parametrize(
    ("names", "messages"),
    [
        ("ALPAH", ["the grid has no queue or site ALPAH; the nearest name is ALPHA"]),
        ("ALPHA, NOWHERE", ["the grid has no queue or site NOWHERE"]),
        ("X/SCORE,Y", ["the grid has no queue or site X/SCORE", "the grid has no queue or site Y"]),
    ],
)
def test_a_queue_that_is_not_there_is_refused_with_the_nearest_one(ada: Person, names: str, messages: list[str]) -> None:
    grid("ALPHA", "BETA")
    answer = ada.submit(parameters(site=names))
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "site", "rule": "exists", "message": message} for message in messages]
    assert not Task.objects.exists()


@pytest.mark.parametrize("names", ["ALPHA", "SITE_BETA", "ALPHA/SCORE, BETA", "A*", "N*", "ALPHA_DISK"])
def test_a_queue_a_site_a_pattern_and_for_users_a_storage_are_accepted(ada: Person, names: str) -> None:
    grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    assert ada.submit(parameters(site=names)).status_code == 201


def test_a_storage_is_no_queue_for_others_than_users(ada: Person) -> None:
    grid("ALPHA")
    assert ada.submit(parameters(site="ALPHA_DISK", prodSourceLabel="ptest")).status_code == 422


def test_without_a_grid_nobody_can_say_which_queues_there_will_be(ada: Person) -> None:
    assert ada.submit(parameters(site="NOWHERE")).status_code == 201
