"""The pages of the tree of brokers and of elements: who has what, and why an element waits."""

from __future__ import annotations

import csv
import io
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.kernel import clock
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from tests.monitoring.answers import MOST_STATEMENTS, counted, text
from tests.tree_of_brokers import NORTH_SITES, Tree, ask_of, make_tree, pull
from workqueues.models import ChildBroker, PulledElement, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def tree() -> Tree:
    grid("ALPHA", "BETA")
    task = submitted(parameters(nEvents=30, nEventsPerJob=10))
    run_agents(1)
    task.refresh_from_db()
    return make_tree(task)


def signed_in(name: str, vo: str, role: str = "operator") -> Client:
    client = Client()
    client.force_login(ensure_user(name, roles=[(vo, role)]))
    return client


@pytest.fixture
def ada() -> Client:
    return signed_in("ada", "demo")


def text_of(client: Client, address: str) -> str:
    with CaptureQueriesContext(connection) as statements:
        answer = client.get(address)
    assert answer.status_code == 200, address
    assert counted(statements) <= MOST_STATEMENTS, address
    return text(answer)


def test_the_tree_tells_of_this_broker_its_parent_and_its_children(ada: Client, tree: Tree) -> None:
    page = text_of(ada, "/tree/")
    for words in ("https://above.example.org/", "certificate has expired", "it began", "got 1 of 1"):
        assert words in page
    rows = {row["name"]: row for row in ada.get("/tree.json").json()["rows"]}
    states = {name: row["state"] for name, row in rows.items()}
    assert states == {"north": "pulls", "south": "draining", "east": "quiet", "west": "new", "old": "revoked"}
    assert rows["north"]["elements"] == {"Running": 1}
    assert (rows["north"]["pending_slots"], rows["north"]["running_slots"], rows["north"]["running_jobs"]) == (8, 8, 5)
    lines = list(csv.DictReader(io.StringIO(ada.get("/tree.csv").getvalue().decode())))
    assert next(line["elements"] for line in lines if line["name"] == "north") == "Running/1"


def test_the_page_of_a_child_has_its_sites_and_elements_and_how_long_it_was_not_heard_of(ada: Client, tree: Tree) -> None:
    page = text_of(ada, "/tree/children/north/")
    assert "SITE_BETA" in page
    assert f"/elements/{tree.running.id}/" in page
    assert "Not heard of for 2\N{NARROW NO-BREAK SPACE}h" in text_of(ada, "/tree/children/east/")
    assert "not known" in text_of(ada, "/tree/children/west/"), "its clock: it was never heard of"
    assert ada.get("/tree/children/nobody/").status_code == 404
    assert ada.get("/tree/children/north.json").json()["sites"][0]["name"] == "SITE_ALPHA"


def test_a_revoked_child_that_drained_is_not_offered_to_pull_again(ada: Client, tree: Tree) -> None:
    ChildBroker.objects.update(vo="demo", drain_since=clock.now(), drain_until=clock.now())
    for address, name, is_offered in (("/tree/", "old", False), ("/tree/", "south", True)):
        assert (f"/tree/children/{name}/undrain/" in text_of(ada, address)) == is_offered, name
    assert "Let it pull again" in text_of(ada, "/tree/children/south/")
    assert "Let it pull again" not in text_of(ada, "/tree/children/old/")


def test_what_a_child_says_is_shown_as_plain_text(ada: Client, tree: Tree) -> None:
    page = text_of(ada, f"/elements/{tree.running.id}/")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; 3 of 10 files done" in page
    assert "<script>alert" not in page + text_of(ada, "/elements/") + text_of(ada, "/tree/children/north/")
    assert "north makes jobs of it" in page


def reasons(client: Client, element_id: int) -> dict[str, list[str]]:
    told = client.get(f"/elements/{element_id}.json").json()["why_waiting"]
    return {each["child"]: [reason["kind"] for reason in each["reasons"]] for each in told}


def test_an_element_that_waits_says_for_each_child_why(ada: Client, tree: Tree) -> None:
    text_of(ada, f"/elements/{tree.waiting.id}/")
    told = reasons(ada, tree.waiting.id)
    assert told["north"] == []
    assert told["south"] == ["drained"]
    assert told["east"] == ["silent"]
    assert told["west"] == ["silent"]
    assert told["old"] == ["revoked"]
    assert reasons(ada, tree.elsewhere.id)["north"] == ["data", "data"]
    ChildBroker.objects.filter(name="north").update(jobs_by_priority={"SITE_ALPHA": {"900": 10}})
    assert reasons(ada, tree.waiting.id)["north"] == ["slot", "site"]
    Task.objects.filter(id=tree.waiting.task_id).update(status="paused", old_status="running")
    assert "Its task is paused" in text_of(ada, f"/elements/{tree.waiting.id}/")


def test_the_list_of_elements_is_filtered_and_read_through_in_pages(ada: Client, tree: Tree) -> None:
    def ids(query: str) -> list[int]:
        answer: dict[str, Any] = ada.get(f"/elements.json?{query}").json()
        return [row["id"] for row in answer["rows"]]

    text_of(ada, "/elements/")
    everything = ids("")
    assert len(everything) == 6
    assert ids("status=Running") == ids("child=north") == ids("site=SITE_ALPHA") == [tree.running.id]
    assert ids("vo=demo") == ids(f"task={tree.running.task_id}") == everything
    assert ids("vo=cms") == []
    first = ada.get("/elements.json?limit=4").json()
    assert [row["id"] for row in first["rows"]] == everything[:4]
    assert [row["id"] for row in ada.get(first["next"]).json()["rows"]] == everything[4:]


def test_elements_of_other_vos_are_as_if_they_were_not_there(tree: Tree) -> None:
    bob = signed_in("bob", "cms")
    assert bob.get("/elements.json").json()["rows"] == []
    assert bob.get(f"/elements/{tree.running.id}/").status_code == 404
    assert "It has no element of your VOs" in text_of(bob, "/tree/children/north/")
    assert "Running" in text_of(bob, "/tree/"), "the numbers are those of the grid, which all see"


def test_every_ask_that_the_page_calls_free_is_met_by_a_pull(ada: Client, tree: Tree) -> None:
    assert reasons(ada, tree.waiting.id)["north"] == []
    answer = pull(tree.children["north"], ask_of(NORTH_SITES))
    assert tree.waiting.id in [each["id"] for each in answer["elements"]]
    assert tree.elsewhere.id not in [each["id"] for each in answer["elements"]]


def test_a_task_tells_of_its_elements_and_of_what_the_child_says(ada: Client, tree: Tree) -> None:
    task_id = tree.running.task_id
    Job.objects.filter(task_id=task_id).delete()  # all of its work goes to child brokers
    page = text_of(ada, f"/tasks/{task_id}/")
    for words in (f"/elements/?task={task_id}&amp;status=Available", f"/elements/{tree.running.id}/", "&lt;script&gt;"):
        assert words in page
    told = ada.get(f"/api/v1/tasks/{task_id}/waiting/").json()
    assert told["elements"]["counts"] == {"Available": 5, "Running": 1}
    messages = [reason["message"] for reason in told["reasons"] if reason["kind"] == "elements"]
    sentence = "Running: child brokers do its work: of 6 elements 1 is at north and 5 wait to be pulled"
    assert told["headline"] == sentence and sentence in page and "jobs have been made" not in page
    assert messages[:2] == ["5 elements wait for a child broker to pull them.", "1 element is at child brokers."]
    assert messages[2].startswith(f"Element {tree.running.id} is Running at north for SITE_ALPHA: 3 of 10 files ended")
    out = io.StringIO()
    call_command("explain", str(task_id), stdout=out)
    assert messages[2] in out.getvalue() and sentence in out.getvalue()
    assert "    BETA: -link_unusable" in out.getvalue()


def test_at_the_child_a_task_says_which_element_of_the_parent_it_does(ada: Client, tree: Tree) -> None:
    at = {"incarnation": uuid4(), "site": "SITE_ALPHA", "vo": "demo", "lease_until": clock.now(), "priority": 1, "jobs": 1}
    task = Task.objects.get(id=tree.running.task_id)
    PulledElement.objects.create(element_id=77, try_nr=5, parent_task_id=12, status="Running", task=task, **at)
    page = text_of(ada, f"/tasks/{task.id}/")
    assert "element 77 of task 12 of the parent" in page
    assert "https://above.example.org/" in page
    told = ada.get(f"/api/v1/tasks/{task.id}/waiting/").json()
    assert told["elements"]["of_parent"]["element_id"] == 77
    assert told["reasons"][0]["message"].startswith("It does element 77 of task 12 of the parent https://above.example.org/")
