"""Changes of tasks over REST and from forms of the pages: who may, in which state, what a body may say, what is left behind."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import resolve, reverse

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from broker_site.foundation.access.routes import permission_of
from brokerage.models import Job
from tests.api.people import Person, faults, person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import GlobalShare, Task
from workqueues.rules.task.changes import CHANGES, Change

pytestmark = pytest.mark.django_db

BODIES: dict[str, dict[str, Any]] = {
    "priority": {"priority": 900},
    "share": {"share": "Express"},
    "reassign": {"site": ""},
    "release": {},
    "split-rule": {"rule": "nMaxFilesPerJob", "value": 3},
    "attributes": {"ramCount": 3000},
    "tries": {},
    "input-complete": {},
}
OWNED = {"reassign", "tries", "input-complete"}
"""Changes that the owner may ask for."""


@pytest.fixture
def task(db: None) -> Task:
    """A running task of ada in demo, in the share Work, with four jobs that wait."""
    grid("ALPHA")
    for name, label in (("Work", ".*"), ("Express", "none")):
        GlobalShare.objects.create(name=name, vo="demo", value=50, prod_source_label=label)
    made = submitted(parameters())
    run_agents(1, ("refine", "feed", "assign", "generate"))
    made.refresh_from_db()
    assert made.status == "running"
    return made


@pytest.mark.parametrize("name", CHANGES)
def test_an_operator_changes_it_and_is_told_what_happens(olga: Person, task: Task, name: str) -> None:
    answer = olga.post(f"tasks/{task.id}/{name}/", {**BODIES[name], "comment": "they wait for it"})
    assert answer.status_code == 202, answer.content
    assert f"ask {task.id}" in answer.json()["detail"]
    assert answer.json()["task"]["id"] == task.id
    row = Audit.objects.get(act=f"task.{name}")
    assert (row.who, row.object, row.vo, row.reason) == ("olga", f"task {task.id}", "demo", "they wait for it")
    assert (row.before, row.after) == (answer.json()["before"], answer.json()["after"])


@pytest.mark.parametrize("name", CHANGES)
def test_the_owner_has_the_rights_of_owners(ada: Person, bob: Person, task: Task, name: str) -> None:
    faults(bob.post(f"tasks/{task.id}/{name}/", BODIES[name]), 403)
    answer = ada.post(f"tasks/{task.id}/{name}/", BODIES[name])
    assert answer.status_code == (202 if name in OWNED else 403), answer.content
    assert Audit.objects.filter(outcome="refused", who="bob").exists()


@pytest.mark.parametrize("name", CHANGES)
def test_for_another_vo_the_task_is_not_there(eve: Person, task: Task, name: str) -> None:
    before = Task.objects.values().get(id=task.id)
    faults(eve.post(f"tasks/{task.id}/{name}/", BODIES[name]), 404)
    assert Task.objects.values().get(id=task.id) == before


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_forbids_it_is_a_conflict_that_names_those_that_do_not(olga: Person, task: Task, name: str) -> None:
    Task.objects.filter(id=task.id).update(status="aborting")
    before = Task.objects.values().get()
    answer = olga.post(f"tasks/{task.id}/{name}/", BODIES[name])
    faults(answer, 409)
    assert f"Task {task.id} is aborting; {name} is accepted in " in answer.json()["detail"]
    assert "running" in answer.json()["detail"]
    assert Task.objects.values().get() == before
    assert not Audit.objects.filter(act=f"task.{name}").exists()


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "input-complete"])
def test_a_task_that_rests_is_what_it_was_before(olga: Person, task: Task, name: str) -> None:
    waiting = submitted(parameters("w"))
    Task.objects.filter(id=waiting.id).update(status="pending", old_status="registered")
    answer = olga.post(f"tasks/{waiting.id}/{name}/", BODIES[name])
    faults(answer, 409)
    assert "is pending, and was registered before" in answer.json()["detail"]


NOT_UNDERSTOOD: list[tuple[str, Any, tuple[str, str]]] = [
    ("priority", {}, ("priority", "required")),
    ("priority", {"priority": None}, ("priority", "required")),
    ("priority", {"priority": "high"}, ("priority", "type")),
    ("priority", {"priority": -1}, ("priority", "range")),
    ("priority", {"priority": 7, "prio": 8}, ("prio", "unknown")),
    ("priority", {"priority": 7, "comment": "c" * 201}, ("comment", "length")),
    ("priority", [7], ("", "type")),
    ("share", {"share": "Expres"}, ("share", "exists")),
    ("share", {"share": ""}, ("share", "exists")),
    ("reassign", {}, ("", "required")),
    ("reassign", {"site": "ALPHA", "nucleus": "X"}, ("", "required")),
    ("reassign", {"site": "ALPHO"}, ("site", "exists")),
    ("reassign", {"site": "ALPHA", "jobs": "maybe"}, ("jobs", "choice")),
    ("reassign", {"nucleus": ""}, ("nucleus", "production")),
    ("split-rule", {"rule": "nEventsPerJob", "value": 7}, ("rule", "choice")),
    ("split-rule", {"rule": "US", "value": 1}, ("rule", "choice")),
    ("split-rule", {"rule": "MF", "value": "many"}, ("value", "type")),
    ("split-rule", {"rule": "MF", "value": -3}, ("value", "range")),
    ("split-rule", {"rule": "nGBPerJob", "value": [1]}, ("value", "type")),
    ("split-rule", {"rule": "MF", "value": ""}, ("value", "type")),
    ("split-rule", {"rule": "MF", "value": []}, ("value", "type")),
    ("split-rule", {"rule": "MF", "value": {}}, ("value", "type")),
    ("split-rule", {"value": 3}, ("rule", "required")),
    ("split-rule", {"rule": "MF"}, ("value", "required")),
    ("attributes", {}, ("", "required")),
    ("attributes", {"coreCount": 5000}, ("coreCount", "range")),
    ("attributes", {"ramCount": 2.5}, ("ramCount", "type")),
    ("attributes", {"cpuTime": -1}, ("cpuTime", "range")),
    ("tries", {"n": 0}, ("n", "range")),
    ("tries", {"n": 101}, ("n", "range")),
]


def test_a_wish_that_is_not_understood_is_refused_and_changes_nothing(
    olga: Person, task: Task, subtests: pytest.Subtests
) -> None:
    before, jobs = Task.objects.values().get(), list(Job.objects.order_by("id").values())
    for name, body, fault in NOT_UNDERSTOOD:
        with subtests.test(name=name, body=body):
            answer = olga.post(f"tasks/{task.id}/{name}/", body)
            assert faults(answer) == {fault}
            assert (Task.objects.values().get(), list(Job.objects.order_by("id").values())) == (before, jobs)
            assert not Audit.objects.filter(act=f"task.{name}").exists()


def test_who_names_a_share_that_is_like_none_is_told_which_there_are(olga: Person, task: Task) -> None:
    answer = olga.post(f"tasks/{task.id}/share/", {"share": "Production"})
    assert answer.json()["errors"][0]["message"] == "the VO demo has no leaf share 'Production'; there are Express, Work"


def test_a_priority_above_1000_needs_the_role_production(olga: Person, task: Task) -> None:
    assert faults(olga.post(f"tasks/{task.id}/priority/", {"priority": 1001}), 403) == {("priority", "production")}
    petra = person("petra", ("demo", "production"))
    assert petra.post(f"tasks/{task.id}/priority/", {"priority": 1001}).status_code == 202


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_route_and_form_of_a_change_ask_for_its_right(change: Change) -> None:
    for name in (f"task-{change.name}", f"page-task-change-{change.name}"):
        assert permission_of(resolve(reverse(name, args=[7])).func, "POST") == change.right.permission


def page(name: str, *roles: tuple[str, str]) -> Client:
    """Somebody in a browser; unsafe requests need the CSRF token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(ensure_user(name, roles=list(roles)))
    client.cookies["csrftoken"] = "t" * 32
    return client


def press(client: Client, address: str, **form: str) -> Any:
    return client.post(address, form, headers={"X-CSRFToken": "t" * 32})


def test_the_page_has_forms_of_what_somebody_may_change_now(task: Task) -> None:
    operator, owner, visitor = (
        page("op", ("demo", "operator")),
        page("ada", ("demo", "submitter")),
        page("eve", ("demo", "auditor")),
    )
    held_up = {"input-complete"}
    shown = {who: {n for n in CHANGES if f"change/{n}/" in client.get(f"/tasks/{task.id}/").text} for who, client in (
        ("operator", operator), ("owner", owner), ("visitor", visitor),
    )}  # fmt: skip
    assert shown == {"operator": set(CHANGES) - held_up, "owner": OWNED - held_up, "visitor": set()}
    Task.objects.filter(id=task.id).update(split_rule="NF=2,WH=1")
    assert "change/input-complete/" in owner.get(f"/tasks/{task.id}/").text
    address = f"/tasks/{task.id}/change/priority/"
    assert press(visitor, address, priority="900").status_code == 403
    assert operator.post(address, {"priority": "900"}).status_code == 403, "without the CSRF token"
    answer = press(operator, address, priority="900", comment="they wait")
    assert (answer.status_code, answer["Location"]) == (302, f"/tasks/{task.id}/")
    assert "has the priority 900" in operator.get(answer["Location"]).text
    task.refresh_from_db()
    assert task.current_priority == 900
    assert Audit.objects.get(act="task.priority").reason == "they wait"


def test_a_form_says_what_holds_now_with_its_unit(task: Task) -> None:
    Task.objects.filter(id=task.id).update(ram_count=2000, ram_unit="MBPerCore", walltime=None, split_rule="NF=2")
    shown = page("op", ("demo", "operator")).get(f"/tasks/{task.id}/").text
    for told in ("Memory, in the task&#x27;s unit. Now 2,000\N{NO-BREAK SPACE}MB per core.", "Now Work.", "Now NF=2."):
        assert told in shown
    assert "Wall time for each MB of input, s.</span>" in shown, "nothing holds of what the task does not say"


def test_a_form_that_is_not_understood_says_why(task: Task) -> None:
    operator = page("op", ("demo", "operator"))
    answer = press(operator, f"/tasks/{task.id}/change/attributes/", ramCount="much")
    assert "ramCount: expected a whole number" in operator.get(answer["Location"]).text
    Task.objects.filter(id=task.id).update(status="aborting")
    answer = press(operator, f"/tasks/{task.id}/change/share/", share="Express")
    assert "is aborting; share is accepted in" in operator.get(answer["Location"]).text
    assert page("op", ("demo", "operator")).get(f"/tasks/{task.id}/").text.count("/change/") == 0
