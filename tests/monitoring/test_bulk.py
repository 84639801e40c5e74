"""From marked rows, or all that match, to an act and what became of each; asked again where more match by then."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.agency.run import run_agent
from brokerage.models import BulkAction
from tests.builders import parameters, submitted
from tests.monitoring.answers import text
from workqueues.models import Task

pytestmark = pytest.mark.django_db


def browser(name: str, role: str) -> Client:
    made = Client()
    made.force_login(ensure_user(name, roles=[("demo", role)]))
    return made


def words(answer: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text(answer))).split())


def sent(answer: Any) -> dict[str, Any]:
    """The hidden fields of the form that begins."""
    found: dict[str, list[str]] = {}
    part = text(answer).split('action="/bulk/start/"')[1].split("</form>")[0]
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', part):
        found.setdefault(name, []).append(unescape(value))
    return {name: values for name, values in found.items() if name != "csrfmiddlewaretoken"}


def test_from_the_list_to_what_became_of_each() -> None:
    oda = browser("oda", "operator")
    tasks = [submitted(parameters(f"many.{n}")) for n in range(3)]
    submitted(parameters("other"))
    page = text(oda.get("/tasks/?task_name=many.*"))
    assert f'form="bulk" name="id" value="{tasks[0].id}"' in page
    assert 'name="filter" value="?task_name=many.%2A"' in unescape(page)
    assert 'form="bulk"' not in text(browser("eve", "auditor").get("/tasks/"))
    sure = oda.get("/bulk/new/", {"of": "tasks", "act": "pause", "all": "1", "filter": "?task_name=many.*"})
    assert "Pause 3 tasks" in words(sure)
    fields = sent(sure)
    submitted(parameters("many.3"))
    Task.objects.filter(task_name="many.3").update(creation_date=tasks[0].creation_date)
    again: Any = oda.post("/bulk/start/", fields)
    assert "/bulk/new/?" in again.url
    assert "4 tasks match now, more than 5 % above the 3" in words(oda.get(again.url))
    assert not BulkAction.objects.exists()
    begun: Any = oda.post("/bulk/start/", sent(oda.get(again.url)))
    action = BulkAction.objects.get()
    assert begun.url == f"/bulk/{action.id}/"
    assert "4 left to do" in words(oda.get(begun.url))
    run_agent("command", looked=True)
    told = words(oda.get(begun.url))
    assert "4 done, 0 skipped" in told
    assert oda.get(f"/bulk/{action.id}.json").json()["done"] == 4
    assert Task.objects.filter(status="paused").count() == 4
    assert browser("ada", "submitter").get(begun.url).status_code == 404


def test_an_act_is_stopped_by_its_button() -> None:
    oda, ada = browser("oda", "operator"), browser("ada", "operator")
    task = submitted(parameters("t1")).id
    begun: Any = oda.post("/bulk/start/", {"of": "tasks", "act": "pause", "id": task, "count": 1})
    assert "Stop this act" in words(ada.get(begun.url))
    BulkAction.objects.update(selection={"vo": "demo", "status": ["ready", "running"]})
    assert "vo=demo status=ready,running" in words(ada.get(begun.url))
    told = words(ada.post(f"{begun.url}stop/", {"comment": "not now"}, follow=True))
    assert "Stopped by ada" in told
    assert "0 done, 0 skipped, 1 not done" in told
    assert "Stop this act" not in told
    run_agent("command", looked=True)
    assert not Task.objects.filter(status="paused").exists()
    assert "is over or stopped already" in words(oda.post(f"{begun.url}stop/", follow=True))


def test_marked_rows_and_selections_that_cannot_be() -> None:
    oda = browser("oda", "operator")
    one, two = submitted(parameters("one")), submitted(parameters("two"))
    sure = oda.get(f"/bulk/new/?of=tasks&act=priority&id={one.id}&id={two.id}&id=x&filter=")
    assert "Set the priority of 2 tasks" in words(sure)
    bad: Any = oda.post("/bulk/start/", sent(sure) | {"priority": "many"})
    assert "priority is to be a whole number" in words(oda.get(bad.url))
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"of": "tasks", "act": "kill"}, "Nothing is selected"),
        ({"of": "tasks", "act": "fly", "id": one.id}, "Choose what to do"),
        ({"of": "nothing"}, "Choose what to do"),
        ({"of": "tasks", "act": "kill", "all": "1", "filter": ""}, "filter it first"),
        ({"of": "tasks", "act": "kill", "all": "1", "filter": "status=nope"}, "cannot be used"),
    )
    for asked, told in cases:
        answer = oda.get("/bulk/new/", asked)
        assert (answer.status_code, told in words(answer)) == (400, True), asked
    assert oda.get("/bulk/7/").status_code == 404
    assert not BulkAction.objects.exists()


def test_what_no_page_has_sent_is_told_and_nothing_is_done() -> None:
    oda = browser("oda", "operator")
    task = submitted(parameters("t1"))
    for moment in ("2026-13-45T00:00:00Z", "0001-01-01T00:00:00+23:59", "soon"):
        body = {"of": "tasks", "act": "kill", "id": task.id, "count": 1, "moment": moment}
        assert "Nothing was done: moment is to be a time." in words(oda.post("/bulk/start/", body, follow=True)), moment
    late = {"of": "tasks", "act": "kill", "id": task.id, "count": 1, "moment": "2999-01-01T00:00"}
    assert oda.post("/bulk/start/", late).headers["Location"].startswith("/bulk/new/")
    assert oda.get("/bulk/new/", {"of": "tasks", "act": "kill", "id": "9" * 5000}).status_code == 400
    assert not BulkAction.objects.exists()
