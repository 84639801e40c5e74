"""Look now: at a task, at what waits for a queue, at what waits in a share; by REST, command and button."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit, Role
from broker_site.foundation.agency.run import run_agent
from brokerage.models import ComputingQueue, Pilot, WaitGroup
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import GlobalShare, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def task() -> Task:
    """A task of the share Simulation that waits for a queue, where a pilot has come back unnoticed."""
    (queue,) = grid("ALPHA")
    Pilot.objects.update(last_seen="2020-01-01T00:00Z")
    GlobalShare.objects.create(name="Simulation", vo="demo", value=1, prod_source_label=".*")
    task = submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents(3, ("refine", "feed", "assign", "generate"))
    task.refresh_from_db()
    assert (task.status, task.gshare) == ("pending", "Simulation"), task.error_dialog
    run_agent("free", looked=True)
    WaitGroup.objects.update(judged_at="2100-01-01T00:00Z")
    ComputingQueue.objects.filter(id=queue.id).update(status="online")
    Pilot.objects.update(last_seen="2100-01-01T00:00Z")
    return task


def person(name: str, *roles: str) -> Client:
    user = ensure_user(name)
    for role in roles:
        Role.objects.create(user=user, vo="demo", role=role)
    client = Client()
    client.force_login(user)
    return client


def goes_on(task: Task) -> bool:
    run_agents(1, ("free", "wake", "generate"))
    task.refresh_from_db()
    return task.status == "running"


@pytest.mark.parametrize("address", ["tasks/{id}", "queues/ALPHA", "shares/Simulation"])
def test_an_operator_looks_by_rest_and_the_task_goes_on(task: Task, address: str) -> None:
    operator, path = person("op", "operator"), f"/api/v1/{address.format(id=task.id)}/look/"
    assert not goes_on(task)
    answer = operator.post(path, {}, content_type="application/json")
    assert (answer.status_code, answer.json()) == (202, {"tasks": 1})
    assert goes_on(task)
    kind = address.partition("s/")[0]
    assert list(Audit.objects.filter(act=f"{kind}.look").values_list("who", "outcome")) == [("op", "done")]
    again = operator.post(path, {}, content_type="application/json")
    assert (again.status_code, again.json()) == (202, {"tasks": 0})


@pytest.mark.parametrize("which", [("--task", "{id}"), ("--queue", "ALPHA"), ("--share", "Simulation")])
def test_the_command_looks_and_says_what_waited(task: Task, which: tuple[str, str]) -> None:
    out = StringIO()
    call_command("look", which[0], which[1].format(id=task.id), stdout=out)
    said = out.getvalue()
    assert said.startswith(("1 task waits for", f"Task {task.id} is looked at now."))
    assert goes_on(task)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (("--task", "999999"), "there is no task 999999"),
        (("--queue", "ALPHO"), "there is no computing queue ALPHO; the nearest name is ALPHA"),
        (("--share", "Simulatio"), "there is no share Simulatio; the nearest name is Simulation"),
    ],
)
def test_the_command_names_the_nearest(task: Task, which: tuple[str, str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("look", *which)


@pytest.mark.parametrize("page", ["/tasks/{id}/", "/queues/ALPHA/", "/shares/"])
def test_the_pages_have_a_button_that_looks(task: Task, page: str) -> None:
    operator, visitor = person("op", "operator"), person("eve", "auditor")
    address = page.format(id=task.id)
    button = f'action="{"/shares/Simulation/" if page == "/shares/" else address}look/"'
    assert button in operator.get(address).content.decode()
    assert button not in visitor.get(address).content.decode()
    path = button.partition('"')[2].rstrip('"')
    assert visitor.post(path).status_code == 403
    answer = operator.post(path, follow=True)
    assert answer.redirect_chain == [(address, 302)]
    assert "looked at now" in answer.content.decode() or "1 task waits for" in answer.content.decode()
    assert goes_on(task)


def test_an_owner_looks_at_a_task_and_at_no_queue(task: Task) -> None:
    owner, other = person(task.user_name, "submitter"), person("bob", "submitter")
    path = f"/api/v1/tasks/{task.id}/look/"
    assert other.post(path, {}, content_type="application/json").status_code == 403
    assert owner.post("/api/v1/queues/ALPHA/look/", {}, content_type="application/json").status_code == 403
    assert owner.post("/api/v1/shares/Simulation/look/", {}, content_type="application/json").status_code == 403
    assert owner.post(path, {}, content_type="application/json").json() == {"tasks": 1}


def test_an_operator_of_another_vo_neither_counts_nor_wakes_what_waits_for_a_queue(task: Task) -> None:
    stranger = ensure_user("eve")
    Role.objects.create(user=stranger, vo="other", role="operator")
    client = Client()
    client.force_login(stranger)
    answer = client.post("/api/v1/queues/ALPHA/look/", {}, content_type="application/json")
    assert (answer.status_code, answer.json()) == (202, {"tasks": 0})
    assert client.post("/queues/ALPHA/look/").status_code == 302
    assert not goes_on(task)
