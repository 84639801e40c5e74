"""One act on many tasks or jobs: by number or filter, in the background, each once, skipped ones with their reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.credentials import ensure_user, issue_user_token, revoke
from broker_site.foundation.access.models import Audit, Role
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.kernel import clock
from brokerage.ledger import bulk
from brokerage.models import BulkAction, BulkTarget, Job
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, take
from workqueues.models import Task

AT = "/api/v1/bulk/"

pytestmark = pytest.mark.django_db


def caller(name: str, role: str) -> Client:
    return Client(HTTP_AUTHORIZATION=f"Bearer {issue_user_token(ensure_user(name, roles=[('demo', role)])).text}")


def post(browser: Client, **body: Any) -> Any:
    return browser.post(AT, body, "application/json")


def outcomes(browser: Client, number: int) -> dict[int, tuple[str, str]]:
    rows = browser.get(f"{AT}{number}/targets/").json()["results"]
    return {row["target_id"]: (row["outcome"], row["said"]) for row in rows}


def fields(answer: Any) -> set[str]:
    return {error["field"] for error in answer.json()["errors"]}


def test_more_than_can_be_selected_are_refused_by_the_name_of_the_field() -> None:
    answer = post(caller("oda", "operator"), of="jobs", act="kill", ids=list(range(1, 10_002)), comment="x")
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"], error["rule"]) == (400, "ids", "max_length")


def test_tasks_by_filter_are_resumed_and_what_refuses_is_skipped_with_its_reason() -> None:
    operator = caller("oda", "operator")
    tasks = [submitted(parameters(f"many.{n}")) for n in range(4)]
    for task in tasks[1:]:
        assert operator.post(f"/api/v1/tasks/{task.id}/pause/", {}, "application/json").status_code == 202
    other = submitted(parameters("other"))
    moment = clock.now()
    late = submitted(parameters("many.late"))
    Task.objects.filter(id=late.id).update(creation_date=moment + timedelta(seconds=1))
    asked = {"of": "tasks", "act": "resume", "filter": {"task_name": "many.*"}, "moment": moment.isoformat(), "comment": "x"}
    assert post(operator, **asked, count=3).status_code == 409
    made = post(operator, **asked, count=4)
    assert made.status_code == 202, made.json()
    number = made.json()["id"]
    assert (made.json()["n"], made.json()["done"]) == (4, 0)
    run_agent("command", looked=True)
    told = operator.get(f"{AT}{number}/").json()
    assert (told["done"], told["skipped"], told["ended_at"] is not None) == (3, 1, True)
    assert outcomes(operator, number)[tasks[0].id][0] == "skipped"
    assert f"Task {tasks[0].id} is registered" in outcomes(operator, number)[tasks[0].id][1]
    assert not Task.objects.filter(status="paused").exists()
    assert Audit.objects.filter(act="task.resume").count() == 3
    assert late.id not in outcomes(operator, number)
    assert caller("eve", "submitter").get(f"{AT}{number}/").status_code == 404
    run_agent("refine", looked=True)
    priority = post(operator, of="tasks", act="priority", ids=[other.id], priority=700)
    run_agent("command", looked=True)
    assert outcomes(operator, priority.json()["id"])[other.id][0] == "done", outcomes(operator, priority.json()["id"])
    other.refresh_from_db()
    assert other.current_priority == 700
    assert "700" in outcomes(operator, priority.json()["id"])[other.id][1]


def test_jobs_are_killed_once_each_whoever_dies_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    (alpha,) = grid("ALPHA")
    submitted(parameters("t1", nEvents=60, nEventsPerJob=10))
    run_agents()
    held = take(alpha)
    assert held is not None
    ids = list(Job.objects.order_by("id").values_list("id", flat=True))
    ada = caller("ada", "submitter")
    made = post(ada, of="jobs", act="kill", ids=[*ids, 999_999])
    assert made.status_code == 202, made.json()
    number = made.json()["id"]
    assert BulkTarget.objects.filter(action=number).count() == len(ids)  # what is not there is not selected
    monkeypatch.setattr(bulk, "KILLS_AT_ONCE", 2)
    dying = iter([False, True])
    note = bulk._note

    def dies(*what: Any) -> None:
        note(*what)
        if next(dying, False):
            raise KeyboardInterrupt  # after the work, before the commit

    monkeypatch.setattr(bulk, "_note", dies)
    with pytest.raises(KeyboardInterrupt):
        bulk.carry_on(clock.now(), 10)
    assert BulkTarget.objects.filter(action=number, outcome="done").count() == 2
    assert bulk.carry_on(clock.now(), 10) == len(ids) - 2
    assert bulk.carry_on(clock.now(), 10) == 0
    told = outcomes(ada, number)
    assert told[held.job_id] == ("done", "it ends with the next sign of life of its pilot")
    assert {said for id_, (_, said) in told.items() if id_ != held.job_id} == {"it is cancelled"}
    assert Audit.objects.filter(act="job.kill").count() == 3
    assert BulkAction.objects.get().ended_at is not None


def test_rights_are_those_of_each_task_and_of_the_moment_it_is_done() -> None:
    mine, others = submitted(parameters("mine")), submitted(parameters("others"))
    Task.objects.filter(id=others.id).update(user_name="bob", submitted_by="bob")
    ada = caller("ada", "submitter")
    number = post(ada, of="tasks", act="kill", ids=[mine.id, others.id]).json()["id"]
    run_agent("command", looked=True)
    told = outcomes(ada, number)
    assert told[mine.id][0] == "done"
    assert told[others.id][0] == "skipped"
    assert f"owner of task {others.id}" in told[others.id][1]
    oda = caller("oda", "operator")
    number = post(oda, of="tasks", act="pause", ids=[others.id]).json()["id"]
    Role.objects.filter(user__username="oda").update(role="auditor")
    run_agent("command", looked=True)
    assert outcomes(oda, number)[others.id][0] == "skipped"


def test_a_large_act_of_one_user_does_not_keep_those_of_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [submitted(parameters(f"many.{n}")).id for n in range(6)]
    ada, oda = caller("ada", "operator"), caller("oda", "operator")
    for _ in range(2):
        assert post(ada, of="tasks", act="pause", ids=tasks).status_code == 202
    urgent = post(oda, of="tasks", act="kill", ids=tasks[:1]).json()["id"]
    monkeypatch.setattr(bulk, "TURN_S", 0.0)
    left, note = iter(range(5)), bulk._note

    def dies(*what: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        note(*what)

    monkeypatch.setattr(bulk, "_note", dies)
    with pytest.raises(KeyboardInterrupt):
        bulk.carry_on(clock.now(), 10)
    assert outcomes(oda, urgent)[tasks[0]][0] == "done"
    monkeypatch.setattr(bulk, "_note", note)
    bulk.carry_on(clock.now(), 10)
    assert not BulkTarget.objects.filter(outcome="").exists()
    assert not BulkAction.objects.filter(ended_at=None).exists()


def test_so_many_acts_of_one_user_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    task = submitted(parameters("t1")).id
    ada, oda = caller("ada", "operator"), caller("oda", "operator")
    monkeypatch.setattr(bulk, "MOST_OPEN", 2)
    assert [post(ada, of="tasks", act="pause", ids=[task]).status_code for _ in range(3)] == [202, 202, 409]
    assert post(oda, of="tasks", act="pause", ids=[task]).status_code == 202
    run_agent("command", looked=True)
    assert post(ada, of="tasks", act="pause", ids=[task]).status_code == 202


def test_an_act_stops_when_the_token_that_asked_for_it_is_revoked() -> None:
    task = submitted(parameters("t1"))
    ada = ensure_user("ada", roles=[("demo", "submitter")])
    leaked = issue_user_token(ada)
    thief = Client(HTTP_AUTHORIZATION=f"Bearer {leaked.text}")
    number = post(thief, of="tasks", act="kill", ids=[task.id]).json()["id"]
    revoke([leaked.credential])
    run_agent("command", looked=True)
    told = outcomes(caller("ada", "submitter"), number)
    assert told == {task.id: ("skipped", "the token with which it was asked for is revoked")}
    task.refresh_from_db()
    assert not task.command


def test_how_many_match_is_told_before_anything_is_begun() -> None:
    operator = caller("oda", "operator")
    tasks = [submitted(parameters(f"many.{n}")).id for n in range(3)]
    asked = {"of": "tasks", "act": "pause", "filter": {"task_name": "many.*"}}
    tried = post(operator, **asked, dry_run=True)
    assert tried.status_code == 200, tried.json()
    assert (tried.json()["n"], tried.json()["ids"]) == (3, tasks)
    assert not BulkAction.objects.exists()
    assert fields(post(operator, **asked, count=3, dry_run="perhaps")) == {"dry_run"}
    assert post(operator, **asked, count=tried.json()["n"], moment=tried.json()["moment"]).status_code == 202


def test_a_stopped_act_leaves_what_is_done_and_tells_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ada, bob, oda = caller("ada", "submitter"), caller("bob", "submitter"), caller("oda", "operator")
    tasks = [submitted(parameters(f"many.{n}")).id for n in range(6)]
    number = post(ada, of="tasks", act="kill", ids=tasks).json()["id"]
    stopping, note, stopped = iter([False, True]), bulk._note, dict[str, Any]()

    def stops_meanwhile(*what: Any) -> None:
        note(*what)
        if next(stopping, False):
            stopped.update(oda.post(f"{AT}{number}/stop/", {"comment": "too many"}, "application/json").json())

    monkeypatch.setattr(bulk, "_note", stops_meanwhile)
    bulk.carry_on(clock.now(), 10)
    assert stopped["stopped_by"] == "oda"
    told = ada.get(f"{AT}{number}/").json()
    assert (told["n"], told["done"], told["skipped"], told["not_done"]) == (6, 2, 0, 4)
    assert told["ended_at"] is not None
    assert [outcome for outcome, _ in sorted(outcomes(ada, number).values())] == ["done"] * 2 + ["not_done"] * 4
    assert ("not_done", "the act was stopped by oda") in outcomes(ada, number).values()
    assert Task.objects.filter(command="kill").count() == 2
    assert Audit.objects.get(act="bulk.stop").reason == "too many"
    assert oda.post(f"{AT}{number}/stop/", {}, "application/json").status_code == 409
    # Of others: an operator within the VOs of the act, and nobody else.
    number = post(ada, of="tasks", act="kill", ids=tasks[3:]).json()["id"]
    assert bob.post(f"{AT}{number}/stop/", {}, "application/json").status_code == 404
    elsewhere = ensure_user("eve", roles=[("atlas", "operator")])
    eve = Client(HTTP_AUTHORIZATION=f"Bearer {issue_user_token(elsewhere).text}")
    assert eve.post(f"{AT}{number}/stop/", {}, "application/json").status_code == 404
    assert ada.post(f"{AT}{number}/stop/", {}, "application/json").json()["not_done"] == 3
    assert bulk.carry_on(clock.now(), 10) == 0


def test_what_the_death_of_an_agent_leaves_of_a_stopped_act_is_never_done() -> None:
    ada = caller("ada", "submitter")
    tasks = [submitted(parameters(f"many.{n}")).id for n in range(2)]
    number = post(ada, of="tasks", act="kill", ids=tasks).json()["id"]
    # Stopped while somebody held both targets, who then died.
    BulkAction.objects.filter(id=number).update(stopped_at=clock.now(), stopped_by="ada")
    assert bulk.carry_on(clock.now(), 10) == 0
    assert {outcome for outcome, _ in outcomes(ada, number).values()} == {"not_done"}
    action = BulkAction.objects.get(id=number)
    assert (action.not_done, action.ended_at is not None) == (2, True)
    assert not Task.objects.filter(command="kill").exists()


def test_a_limited_token_sees_and_stops_no_act_that_reaches_beyond_it() -> None:
    user = ensure_user("ada", roles=[("demo", "operator"), ("atlas", "operator")])
    whole, limited = (
        Client(HTTP_AUTHORIZATION=f"Bearer {issue_user_token(user, vo=vo).text}") for vo in ("", "demo")
    )  # fmt: skip
    task = submitted(parameters("one")).id
    number = post(whole, of="tasks", act="kill", ids=[task]).json()["id"]
    assert limited.get(f"{AT}{number}/targets/").status_code == 404
    assert limited.post(f"{AT}{number}/stop/", {}, "application/json").status_code == 404
    assert limited.get(f"/bulk/{number}/").status_code == 404
    own = post(limited, of="tasks", act="kill", ids=[task]).json()["id"]
    assert [row["id"] for row in limited.get(AT).json()["results"]] == [own]
    assert [row["id"] for row in whole.get(AT).json()["results"]] == [own, number]
    assert limited.post(f"{AT}{own}/stop/", {}, "application/json").status_code == 200


@pytest.mark.parametrize("nothing", ["", "  ", None, [], ["", "ada"]])
def test_a_filter_without_value_is_refused_and_never_means_all(nothing: Any) -> None:
    submitted(parameters("one"))
    asked = {"task_name": "*", "user_name": nothing}
    refused = post(caller("ada", "submitter"), of="tasks", act="kill", filter=asked, dry_run=True)
    assert (refused.status_code, fields(refused)) == (422, {"filter.user_name"})


def test_the_list_of_acts_reads_no_target() -> None:
    ada = caller("ada", "submitter")
    number = post(ada, of="tasks", act="kill", ids=[submitted(parameters("t1")).id]).json()["id"]
    run_agent("command", looked=True)
    with CaptureQueriesContext(connection) as said:
        (row,) = ada.get(AT).json()["results"]
    assert (row["id"], row["done"], row["skipped"], row["not_done"]) == (number, 1, 0, 0)
    assert not [each["sql"] for each in said if "bulktarget" in each["sql"]]


def test_bad_selections_are_told_with_their_field_and_nothing_is_done() -> None:
    operator = caller("oda", "operator")
    submitted(parameters("t1"))
    assert fields(post(operator, of="jobs", act="pause", ids=[1])) == {"act"}
    assert fields(post(operator, of="tasks", act="kill")) == {"ids"}
    assert fields(post(operator, of="tasks", act="kill", filter={"vo": "demo"})) == {"count"}
    assert fields(post(operator, of="tasks", act="kill", filter={"vos": "demo"}, count=1)) == {"filter.vos"}
    assert fields(post(operator, of="tasks", act="kill", filter={}, count=1)) == {"filter"}
    assert fields(post(operator, of="tasks", act="kill", filter={"status": "nope"}, count=1)) == {"filter.status"}
    assert fields(post(operator, of="tasks", act="kill", ids=[999])) == {"ids"}
    assert "priority" in fields(post(operator, of="tasks", act="priority", ids=[1]))
    assert fields(post(operator, of="tasks", act="kill", ids=[1], moment="2999-01-01T00:00:00Z")) == {"moment"}
    assert post(operator, of="all", act="kill", ids=[1]).status_code in (400, 422)
    assert post(caller("eve", "auditor"), of="tasks", act="kill", ids=[1]).status_code == 403
    assert not BulkAction.objects.exists()
