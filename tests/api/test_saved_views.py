"""Saved views: kept by REST and by the page, shared with a VO, deleted by their owner; filters that say nothing are refused."""

from __future__ import annotations

import pytest
from django.test import Client

from brokerage.api.filtering import FILTERS
from brokerage.models import SavedView
from monitoring.views.lists import LISTS
from tests.api.people import Person, faults, person
from tests.monitoring.answers import text
from tests.pages.scene import visitor

pytestmark = pytest.mark.django_db
WAITING = {"list": "tasks", "name": "what waits", "query": "status=pending&user=ada&why=memory&cursor=x", "vo": ""}


def test_a_view_is_seen_by_its_owner_and_where_it_is_shared(ada: Person, bob: Person, eve: Person) -> None:
    made = ada.post("saved-views/", WAITING)
    assert (made.status_code, made.json()["query"]) == (201, "status=pending&user_name=ada&why=memory")
    shared = ada.post("saved-views/", {**WAITING, "name": "ours", "vo": "demo"}).json()
    assert [row["name"] for row in ada.get("saved-views/", list="tasks").json()["results"]] == ["ours", "what waits"]
    assert [row["name"] for row in bob.get("saved-views/").json()["results"]] == ["ours"]
    assert eve.get("saved-views/").json()["results"] == []
    assert bob.delete(f"saved-views/{shared['id']}/").status_code == 403
    assert eve.delete(f"saved-views/{shared['id']}/").status_code == 404
    assert ada.delete(f"saved-views/{shared['id']}/").status_code == 204
    assert bob.get(f"saved-views/{shared['id']}/").status_code == 404


def test_what_is_no_filter_of_the_list_is_refused_and_nothing_kept(ada: Person) -> None:
    for said, fault in (
        ({"query": "statsu=done"}, ("statsu", "unknown")),
        ({"query": "age=soon"}, ("age", "form")),
        ({"query": "cursor=x"}, ("query", "none")),
        ({"list": "nothing"}, ("list", "invalid_choice")),
        ({"name": ""}, ("name", "blank")),
    ):
        assert faults(ada.post("saved-views/", {**WAITING, **said})) == {fault}
    assert ada.post("saved-views/", {**WAITING, "vo": "other"}).status_code == 403
    assert not SavedView.objects.exists()
    ada.post("saved-views/", WAITING)
    assert faults(ada.post("saved-views/", WAITING)) == {("name", "unique")}


def test_a_filter_that_is_too_long_as_an_address_is_refused(ada: Person) -> None:
    long = "task_name=" + ",".join(["é" * 200] * 18)
    assert faults(ada.post("saved-views/", {**WAITING, "query": long})) == {("query", "length")}
    assert faults(ada.post("saved-views/", {**WAITING, "query": "status=running&window=%00"})) == {("window", "characters")}
    client = Client()
    client.force_login(visitor())
    assert "The view is not saved. query: " in text(client.post("/views/tasks/save/", {"query": long, "name": "x"}, follow=True))
    assert not SavedView.objects.exists()


def test_a_page_saves_shows_and_deletes_views() -> None:
    client = Client()
    client.force_login(visitor())
    hostile = "<b>mine</b>"
    answer = client.post("/views/jobs/save/", {"query": "status=failed&age=<2h", "name": hostile, "vo": "demo"}, follow=True)
    assert answer.redirect_chain == [("/jobs/?status=failed&age=%3C2h", 302)]
    page = text(answer)
    assert "&lt;b&gt;mine&lt;/b&gt;" in page and hostile not in page
    assert 'href="/jobs/?status=failed&amp;age=%3C2h"' in page
    told = text(client.post("/views/jobs/save/", {"query": "statsu=1", "name": "x"}, follow=True))
    assert "The view is not saved. statsu: not a filter of this list" in told
    view = SavedView.objects.get()
    person("bob", ("demo", "submitter"))
    assert "is deleted" in text(client.post(f"/views/{view.id}/delete/", follow=True))
    assert not SavedView.objects.exists()


def test_each_list_with_filters_can_be_kept() -> None:
    told = {listing.name: listing.filters for listing in LISTS if listing.filters is not None}
    assert {name: FILTERS.get(name) for name in told} == told
