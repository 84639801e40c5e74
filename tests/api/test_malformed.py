"""Requests that make no sense get a 400 that says why, never a 500: characters that no text can hold, numbers without end."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import urlencode

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from tests.api.people import Person
from tests.builders import grid, parameters, submitted

pytestmark = pytest.mark.django_db

LISTS = ("tasks", "datasets", "jobs", "queues", "sites", "feeds", "throttle-verdicts")
PLACES = ("\x00", "0\x00abc", "9" * 5000, "\ud7ff\x7f", "-1", "x" * 101)


@pytest.fixture
def browser(db: None) -> Client:
    """A submitter and operator at the pages."""
    client = Client(raise_request_exception=False)
    client.force_login(ensure_user("olga", superuser=True, roles=[("demo", "submitter"), ("demo", "operator")]))
    return client


@pytest.mark.parametrize("name", LISTS)
def test_a_cursor_that_we_did_not_make_is_refused_by_name(ada: Person, name: str) -> None:
    for place in PLACES:
        for more in ({}, {"r": "1"}, {"o": "9" * 5000}):
            cursor = b64encode(urlencode({"p": place, **more}).encode()).decode()
            answer = ada.get(f"{name}/", cursor=cursor)
            known_form = name in ("queues", "sites", "feeds") and place == "-1"
            assert answer.status_code == 400 or (known_form and answer.status_code == 200), (place[:20], more, answer.content)
            if answer.status_code == 400:
                assert answer.json()["errors"][0]["field"] == "cursor"


@pytest.mark.parametrize("field", ["comment", "next", "a\x00b"])
def test_a_form_with_a_nul_character_is_refused_and_changes_nothing(browser: Client, field: str) -> None:
    grid("ALPHA")
    task = submitted(parameters())
    answer = browser.post(f"/tasks/{task.id}/command/kill/", {field: "a\x00b"})
    assert answer.status_code == 400
    assert "holds a NUL character" in answer.text
    task.refresh_from_db()
    assert task.status == "registered"


def test_forms_of_the_admin_and_the_login_refuse_it_too(browser: Client) -> None:
    for address in (
        "/login/",
        "/admin/login/",
        "/admin/workqueues/workqueue/add/",
        "/admin/access/credential/add/",
        "/appearance/",
    ):
        assert browser.post(address, {"username": "a\x00b", "appearance": "\x00"}).status_code == 400


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 5000])
def test_numbers_without_end_find_nothing(browser: Client, digits: str) -> None:
    for address in (
        *(f"/admin/workqueues/task/?q={digits}", f"/admin/brokerage/job/?q={digits}", f"/admin/workqueues/task/?p={digits}"),
        *(f"/admin/workqueues/task/{digits}/change/", f"/admin/workqueues/task/?id={digits}", f"/admin/access/audit/?q={digits}"),
        *(
            f"/tasks/{digits}/",
            f"/jobs/{digits}/",
            f"/tasks/?limit={digits}",
            f"/jobs.json?task={digits}",
            f"/tasks.csv?id={digits}",
        ),
        *(f"/api/v1/tasks/{digits}/", f"/api/v1/jobs/?page_size={digits}", f"/api/v1/jobs/?task={digits}"),
    ):
        assert browser.get(address, follow=True).status_code in (200, 400, 404), address[:60]
