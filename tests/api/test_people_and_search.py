"""Owners, one's own work and the search over REST: what the pages show, for whoever may see it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.api.people import Person, faults, person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents

pytestmark = pytest.mark.django_db


@pytest.fixture
def work(db: None) -> int:
    grid("ALPHA")
    task = submitted(parameters("mc23.evgen"))
    run_agents()
    return task.id


def page(who: Person, path: str) -> Any:
    return Client(headers={"Authorization": f"Bearer {who.token}"}).get(path).json()


def test_owners_are_listed_with_their_jobs_as_on_the_page(work: int, ada: Person) -> None:
    told = ada.get("users/").json()
    of_page = page(ada, "/users.json")
    assert told["results"] == of_page["rows"]
    assert told["count"] == of_page["count"]
    assert ada.get("users/", q="nobody").json()["results"] == []
    assert faults(ada.get("users/", name="ada"), 400) == {("name", "unknown")}


def test_ones_own_work_is_that_of_the_page_and_of_ones_name(work: int, ada: Person) -> None:
    own = ada.get("me/tasks/").json()
    assert [task["id"] for task in own["live"]] == [work]
    assert own["live"][0]["status"]
    of_page = page(ada, "/me.json")
    (row,), (shown,) = own["live"], of_page["live"]
    times = {name for name in row if name.endswith(("_date", "_since"))}  # pages round them to milliseconds
    assert {name: shown[name] for name in shown if name not in times} == {name: row[name] for name in row if name not in times}
    assert [of_page[name] for name in ("ended", "needs_attention", "more")] == [[], [], False]
    eve = person("eve", ("demo", "submitter"))
    assert eve.get("me/tasks/").json()["live"] == []
    assert eve.get("users/ada/tasks/").json() == own
    assert eve.get("users/nobody/tasks/").status_code == 404


def test_who_has_no_role_in_the_vo_finds_nobody_and_nothing(work: int) -> None:
    stranger = person("zoe", ("cms", "submitter"))
    assert stranger.get("users/").json()["results"] == []
    assert stranger.get("users/ada/tasks/").status_code == 404
    assert stranger.get("search/", q="mc23").json() == {"q": "mc23", "results": [], "whole": True}


def test_the_search_finds_by_number_and_by_name_what_the_page_finds(work: int, ada: Person) -> None:
    by_number = ada.get("search/", q=str(work)).json()
    assert ("task", f"{work} mc23.evgen") in {(found["kind"], found["name"]) for found in by_number["results"]}
    by_name = ada.get("search/", q="evgen").json()
    assert by_name["results"] == page(ada, "/search.json?q=evgen")["rows"]
    assert by_name["results"][0]["url"].endswith(f"/tasks/{work}/")
    assert {found["kind"] for found in ada.get("search/", q="ALPH").json()["results"]} == {"queue"}
    assert ada.get("search/", q="e").json()["results"] == []
    assert ada.get("search/").json()["results"] == []
    assert faults(ada.get("search/", q="x" * 257), 400) == {("q", "max_length")}
