"""Commands on tasks over REST and from pages: who may, in which state, what a body may say, and what is left behind."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import resolve, reverse

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from broker_site.foundation.access.routes import permission_of
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import Job
from tests.api.people import Person, faults, person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, take
from workqueues.models import Task, TaskChange
from workqueues.rules.task.commands import COMMANDS, Command

pytestmark = pytest.mark.django_db


@pytest.fixture
def task(db: None) -> Task:
    """A registered task of ada in demo."""
    return submitted(parameters())


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def failed(task: Task) -> Task:
    """The task as one that has failed."""
    for state in ("defined", "ready", "prepared"):
        Task.objects.filter(id=task.id).update(status=state)
    Task.objects.filter(id=task.id).update(status="failed", ended_at="2026-01-01T00:00:00Z")
    return task


@pytest.mark.parametrize(("name", "doing"), [("kill", "aborting"), ("finish", "finishing")])
def test_the_owner_commands_and_is_told_what_the_task_is_now(ada: Person, task: Task, name: str, doing: str) -> None:
    answer = ada.post(f"tasks/{task.id}/{name}/", {"comment": "wrong input"})
    assert (answer.status_code, answer.json()["status"]) == (202, doing)
    assert status(task) == doing
    move = TaskChange.objects.latest("id")
    assert (move.who, "wrong input" in move.why) == ("user:ada", True)
    row = Audit.objects.get(act=f"task.{name}")
    assert (row.who, row.object, row.before, row.vo) == ("ada", f"task {task.id}", {"status": "registered"}, "demo")


def test_a_task_for_somebody_else_is_commanded_by_both(ada: Person, petra: Person) -> None:
    paul = person("paul", ("demo", "submitter"), ("demo", "production"))
    first, second = (petra.submit(parameters(name, userName="ada")).json()["id"] for name in ("t1", "t2"))
    assert petra.get(f"tasks/{first}/").json()["submitted_by"] == "petra"
    shown = page("petra", ("demo", "submitter"), ("demo", "production")).get(f"/tasks/{first}/").text
    assert "submitted by petra" in shown
    assert f"/tasks/{first}/command/kill/" in shown
    faults(paul.post(f"tasks/{first}/kill/"), 403)
    assert petra.post(f"tasks/{first}/kill/").status_code == 202
    row = Audit.objects.get(act="task.kill")
    assert (row.who, row.object) == ("petra", f"task {first}")
    assert row.after == {"status": "aborting", "comment": "", "user_name": "ada"}
    assert TaskChange.objects.latest("id").who == "user:petra"
    assert ada.post(f"tasks/{second}/kill/").status_code == 202


def test_who_lost_the_role_production_commands_no_task_of_others(ada: Person, petra: Person) -> None:
    task = petra.submit(parameters(userName="ada")).json()["id"]
    ensure_user("petra").roles.filter(role="production").delete()
    assert "nor its submitter with the role production" in petra.post(f"tasks/{task}/kill/").json()["detail"]
    assert petra.post(f"tasks/{task}/kill/").status_code == 403


def test_a_body_is_not_needed(ada: Person, task: Task) -> None:
    assert ada.post(f"tasks/{task.id}/kill/").status_code == 202


def test_an_operator_of_the_vo_commands_too(olga: Person, task: Task) -> None:
    assert olga.post(f"tasks/{task.id}/kill/", {}).status_code == 202


def test_retry_is_taken_where_the_task_failed(ada: Person, task: Task) -> None:
    answer = ada.post(f"tasks/{failed(task).id}/retry/", {})
    assert (answer.status_code, answer.json()["status"]) == (202, "toretry")


def test_a_command_that_is_being_carried_out_is_taken_again_and_changes_nothing(ada: Person, task: Task) -> None:
    ada.post(f"tasks/{task.id}/kill/")
    moves = TaskChange.objects.count()
    assert ada.post(f"tasks/{task.id}/kill/").status_code == 202
    assert TaskChange.objects.count() == moves


@pytest.mark.parametrize(("name", "accepting"), [("kill", "running"), ("finish", "running"), ("retry", "failed")])
def test_a_state_that_forbids_it_is_a_conflict_that_names_it_and_those_that_do_not(
    ada: Person, task: Task, name: str, accepting: str
) -> None:
    if name != "retry":
        failed(task)
    answer = ada.post(f"tasks/{task.id}/{name}/", {})
    faults(answer, 409)
    detail = answer.json()["detail"]
    assert f"Task {task.id} is {status(task)}; {name} is accepted in " in detail
    assert accepting in detail.partition(" accepted in ")[2]
    assert not Audit.objects.filter(act=f"task.{name}").exists()
    assert Audit.objects.filter(outcome="refused", status=409).count() == 1


def test_others_of_the_vo_may_not(bob: Person, task: Task) -> None:
    faults(bob.post(f"tasks/{task.id}/kill/", {}), 403)
    assert status(task) == "registered"
    assert Audit.objects.get(outcome="refused").who == "bob"


def test_others_may_not_learn_from_the_order_of_checks(bob: Person, task: Task) -> None:
    faults(bob.post(f"tasks/{failed(task).id}/kill/", {"comment": 7, "what": 1}), 403)


def test_for_another_vo_the_task_is_not_there(eve: Person, task: Task) -> None:
    faults(eve.post(f"tasks/{task.id}/kill/", {}), 404)
    assert status(task) == "registered"


def test_a_task_that_does_not_exist_is_404(ada: Person) -> None:
    assert ada.post("tasks/77/kill/").status_code == 404
    assert ada.post(f"tasks/{10**30}/kill/").status_code == 404


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"sfot": False}, ("sfot", "unknown")),
        ({"soft": "perhaps"}, ("soft", "type")),
        ({"soft": None}, ("soft", "null")),
        ({"comment": "c" * 201}, ("comment", "max_length")),
        ({"comment": ["c"]}, ("comment", "type")),
        ([], ("", "invalid")),
        ("soft", ("", "invalid")),
    ],
)
def test_a_wish_that_is_not_understood_is_refused(ada: Person, task: Task, body: Any, fault: tuple[str, str]) -> None:
    assert faults(ada.post(f"tasks/{task.id}/finish/", body)) == {fault}
    assert status(task) == "registered"


def test_kill_has_no_soft(ada: Person, task: Task) -> None:
    assert faults(ada.post(f"tasks/{task.id}/kill/", {"soft": True})) == {("soft", "unknown")}


def test_a_broken_body_is_refused(ada: Person, task: Task) -> None:
    faults(ada.post(f"tasks/{task.id}/finish/", b"{"), 400)
    assert status(task) == "registered"


@pytest.mark.parametrize(
    ("body", "running"),
    [({"soft": True}, "running"), ({}, "running"), ({"soft": False, "comment": "software is broken"}, "asked")],
)
def test_a_soft_finish_spares_running_jobs_and_a_hard_one_does_not(ada: Person, body: dict[str, Any], running: str) -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters())
    run_agents()
    held = take(queue)
    assert held is not None
    assert ada.post(f"tasks/{task.id}/finish/", body).status_code == 202
    run_agents()
    job = Job.objects.get(id=held.job_id)
    assert (job.status, job.kill_requested) == ("running", running == "asked")
    assert set(Job.objects.exclude(id=held.job_id).values_list("status", flat=True)) == {"cancelled"}


def page(name: str, *roles: tuple[str, str]) -> Client:
    """Somebody in a browser; unsafe requests need the CSRF token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(ensure_user(name, roles=list(roles)))
    client.cookies["csrftoken"] = "t" * 32
    return client


def press(client: Client, address: str, **form: str) -> Any:
    return client.post(address, form, headers={"X-CSRFToken": "t" * 32})


def test_a_button_of_a_page_commands_and_comes_back_with_a_message(task: Task) -> None:
    client = page("ada", ("demo", "submitter"))
    answer = press(client, f"/tasks/{task.id}/command/kill/")
    assert (answer.status_code, answer["Location"]) == (302, f"/tasks/{task.id}/")
    assert status(task) == "aborting"
    assert "is being killed" in client.get(answer["Location"]).text
    assert press(client, f"/tasks/{task.id}/command/kill/", next="/tasks/?vo=demo")["Location"] == "/tasks/?vo=demo"
    assert press(client, f"/tasks/{task.id}/command/kill/", next="https://elsewhere.example/")["Location"] == f"/tasks/{task.id}/"


@pytest.mark.parametrize(("form", "kept"), [({"comment": "enough"}, "soft finish: enough"), ({"hard": "1"}, "finish")])
def test_the_box_of_a_button_turns_an_option_round(task: Task, form: dict[str, str], kept: str) -> None:
    press(page("ada", ("demo", "submitter")), f"/tasks/{task.id}/command/finish/", **form)
    task.refresh_from_db()
    assert (task.status, task.command_comment) == ("finishing", kept)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_route_and_button_of_a_command_ask_for_its_right(command: Command) -> None:
    for name in (f"task-{command.name}", f"page-task-command-{command.name}"):
        assert permission_of(resolve(reverse(name, args=[7])).func, "POST") == command.right.permission


def test_a_button_in_a_state_that_forbids_it_says_so(task: Task) -> None:
    client = page("ada", ("demo", "submitter"))
    answer = press(client, f"/tasks/{task.id}/command/retry/")
    assert answer.status_code == 302
    assert "retry is accepted in finished" in client.get(answer["Location"]).text


@pytest.mark.parametrize(("roles", "code"), [([("demo", "submitter")], 403), ([("other", "operator")], 404), ([], 403)])
def test_buttons_know_the_same_rights(task: Task, roles: list[tuple[str, str]], code: int) -> None:
    assert press(page("bob", *roles), f"/tasks/{task.id}/command/kill/").status_code == code
    assert status(task) == "registered"


def test_a_button_needs_a_session_a_post_and_the_csrf_token(task: Task) -> None:
    address = f"/tasks/{task.id}/command/kill/"
    client = page("ada", ("demo", "submitter"))
    assert client.post(address).status_code == 403
    assert client.get(address).status_code == 405
    assert "/login/" in Client().post(address)["Location"]
    assert press(client, f"/tasks/{task.id}/command/dance/").status_code == 404
    assert status(task) == "registered"


def test_rest_with_a_session_needs_the_csrf_token(task: Task) -> None:
    client = page("ada", ("demo", "submitter"))
    address = f"/api/v1/tasks/{task.id}/kill/"
    assert client.post(address, b"{}", content_type="application/json").status_code == 403
    assert status(task) == "registered"
    assert client.post(address, b"{}", content_type="application/json", headers={"X-CSRFToken": "t" * 32}).status_code == 202


def test_a_revoked_role_commands_no_more(task: Task) -> None:
    olga = person("olga", ("demo", "operator"))
    ensure_user("olga").roles.all().delete()
    assert olga.post(f"tasks/{task.id}/kill/").status_code == 403


def test_who_may_go_beyond_the_limits_of_retries_over_rest_and_from_the_page(ada: Person, task: Task) -> None:
    owner, other = page("ada", ("demo", "submitter")), page("oscar", ("demo", "operator"))
    label = "Retry whatever the limits of retries"
    assert label not in other.get(f"/tasks/{failed(task).id}/").text
    assert ada.post(f"tasks/{task.id}/retry/", {"transcend": True}).status_code == 403
    assert status(task) == "failed"
    Task.objects.filter(id=task.id).update(status="toretry", ended_at=None)
    Task.objects.filter(id=task.id).update(status="exhausted")
    assert label not in owner.get(f"/tasks/{task.id}/").text
    assert label in other.get(f"/tasks/{task.id}/").text
    assert press(owner, f"/tasks/{task.id}/command/retry/", transcend="1").status_code == 403
    assert press(other, f"/tasks/{task.id}/command/retry/", transcend="1").status_code == 302
    task.refresh_from_db()
    assert (task.status, task.command_comment) == ("toretry", "transcend retry")


def test_beyond_the_tries_of_its_files_a_retry_is_409_over_rest(ada: Person, task: Task) -> None:
    set_override("retry_task", "JOB_MAX_ATTEMPT_user", "3", who="opa", why="test")
    run_agents()
    answer = ada.post(f"tasks/{failed(task).id}/retry/", {})
    assert answer.status_code == 409
    assert answer.json()["detail"] == (
        f"Task {task.id} is not retried: a file of it may have 3 tries already, the limit is 3 (JOB_MAX_ATTEMPT_user)."
    )
    assert status(task) == "failed"
