"""The audit: each privileged call leaves exactly one row, done or refused, and no row can be changed."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.access.credentials import ensure_user, issue_enrolment, issue_pilot_token, issue_user_token
from broker_site.foundation.access.models import Audit, User
from broker_site.foundation.access.tokens import mint_job_token

Bearer = Callable[[str], Client]
JSON = "application/json"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sample_site")]


@pytest.fixture
def operator(db: None) -> str:
    """The token of an operator of atlas, made before the rows that a test counts."""
    return issue_user_token(ensure_user("op", roles=[("atlas", "operator")])).text


def new_rows(call: Callable[[], object]) -> list[tuple[object, ...]]:
    before = set(Audit.objects.values_list("pk", flat=True))
    call()
    fields = ("who", "kind", "act", "object", "outcome", "status", "reason")
    return list(Audit.objects.exclude(pk__in=before).values_list(*fields))


def test_an_act_leaves_the_row_that_its_view_wrote(bearer: Bearer, operator: str) -> None:
    rows = new_rows(lambda: bearer(operator).post("/api/v1/kill/7/"))
    assert rows == [("op", "user", "task.kill", "task 7", "done", None, "")]
    row = Audit.objects.get(act="task.kill")
    assert (row.before, row.after, row.vo) == ({"status": "running"}, {"status": "aborting"}, "atlas")
    assert row.prefix == operator[:12]
    assert len(row.trace_id) == 16


def test_an_act_whose_view_forgot_its_row_leaves_one_too(bearer: Bearer, operator: str) -> None:
    rows = new_rows(lambda: bearer(operator).post("/api/v1/kill/11/"))
    assert rows == [("op", "user", "task:command", "POST /api/v1/kill/11/", "done", 200, "")]


def test_a_refusal_after_the_row_was_rolled_back_leaves_one(bearer: Bearer, operator: str) -> None:
    rows = new_rows(lambda: bearer(operator).post("/api/v1/kill/9/"))
    assert rows == [("op", "user", "task:command", "POST /api/v1/kill/9/", "refused", 409, "Wrong state")]


def test_a_fault_leaves_one(bearer: Bearer, operator: str) -> None:
    rows = new_rows(lambda: bearer(operator).post("/api/v1/kill/10/"))
    assert rows == [("op", "user", "task:command", "POST /api/v1/kill/10/", "failed", 500, "Internal error")]


def test_each_refusal_leaves_one_with_who_it_was(client: Client, bearer: Bearer, alice: User) -> None:
    root = Client(enforce_csrf_checks=True)
    root.force_login(ensure_user("root", superuser=True))
    auditor = issue_user_token(ensure_user("eve", roles=[("atlas", "auditor")])).text
    cases: list[tuple[Client, str, str, int]] = [
        (client, "anonymous", "anonymous", 401),
        (bearer("gbu_" + "x" * 43), "anonymous", "anonymous", 401),
        (bearer(auditor), "eve", "user", 403),
        (root, "root", "user", 403),
        (bearer(mint_job_token(7, 1, 60)), "job 7, epoch 1", "job", 403),
    ]
    for caller, who, kind, status in cases:
        rows = new_rows(lambda caller=caller: caller.post("/api/v1/tasks/", {"name": "t"}, content_type=JSON))  # type: ignore[misc]
        assert [row[:2] + row[2:6:3] for row in rows] == [(who, kind, "task:submit", status)]


def test_invalid_submissions_leave_one(bearer: Bearer, alice: User) -> None:
    submitter = bearer(issue_user_token(alice).text)
    for body, status in ((b"{", 400), (b"{}", 422), (b'{"name": "t"}', 201)):
        rows = new_rows(lambda body=body: submitter.post("/api/v1/tasks/", body, content_type=JSON))  # type: ignore[misc]
        assert [(row[2], row[5]) for row in rows] == [("task:submit", status)]


def test_reading_and_the_calls_of_pilots_leave_none(bearer: Bearer, alice: User) -> None:
    enrolment = issue_enrolment("ALPHA").text
    pilot = bearer(issue_pilot_token(principal_of_token(enrolment), uuid4()).text)
    user = bearer(issue_user_token(alice).text)

    def calls() -> None:
        user.get("/api/v1/tasks/")
        user.post("/nowhere")
        pilot.post("/api/v1/pilots/match/", {}, content_type=JSON)
        bearer(mint_job_token(7, 1, 60)).post("/api/v1/jobs/7/report/", {}, content_type=JSON)

    assert new_rows(calls) == []
    assert len(new_rows(lambda: bearer(enrolment).post("/api/v1/pilots/", {}, content_type=JSON))) == 1


@pytest.mark.django_db(transaction=True)
def test_the_answer_stands_where_no_row_can_be_written(bearer: Bearer, operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, caller = Audit.objects.count(), bearer(operator)
    with monkeypatch.context() as gone:
        connection.close()
        gone.setitem(connection.settings_dict, "PORT", "1")  # nobody listens there
        answer = caller.post("/api/v1/kill/7/")
        connection.close()
    assert (answer.status_code, answer.json()["title"]) == (503, "Database not available")
    assert Audit.objects.count() == before


@pytest.mark.parametrize("change", ["UPDATE access_audit SET outcome = 'done'", "DELETE FROM access_audit"])
def test_the_database_refuses_to_change_a_row(alice: User, change: str) -> None:
    assert Audit.objects.exists()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change)


def test_a_row_outlives_its_user(alice: User) -> None:
    issue_user_token(alice)
    alice.delete()
    assert Audit.objects.filter(object="user alice").exists()
