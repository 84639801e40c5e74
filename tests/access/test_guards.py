"""Guards over HTTP: pages, API, cookies and CSRF, errors as problems, trace ids and headers."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import resolve

from broker_site.foundation.access.credentials import ensure_user, issue_enrolment, issue_user_token
from broker_site.foundation.access.guards import check
from broker_site.foundation.access.models import User
from broker_site.foundation.access.permissions import ADMIN, OPEN
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.routes import permission_of, routes
from broker_site.foundation.access.tokens import mint_job_token
from broker_site.foundation.access.trace import TraceFilter

Bearer = Callable[[str], Client]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sample_site")]


@pytest.fixture
def session(alice: User) -> Client:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    return client


def test_a_stranger_is_sent_to_the_login_and_back(client: Client) -> None:
    response = client.get("/tasks/?status=done")
    assert (response.status_code, response["Location"]) == (302, "/login/?next=/tasks/%3Fstatus%3Ddone")


def test_a_fragment_of_a_page_sends_the_whole_page_to_the_login(client: Client) -> None:
    response = client.get("/tasks/", headers={"HX-Request": "true"})
    assert (response.status_code, response["HX-Redirect"]) == (401, "/login/")


def test_a_user_sees_the_page_and_one_without_role_does_not(session: Client) -> None:
    assert session.get("/tasks/").content == b"<p>tasks</p>"
    stranger = Client()
    stranger.force_login(ensure_user("bob"))
    assert stranger.get("/tasks/").status_code == 403


def test_who_lacks_a_right_is_told_which_roles_give_it() -> None:
    auditor = Principal("user", "eve", roles={"cms": frozenset({"auditor"})})
    for permission, said in (
        ("queue:look", "This needs the right queue:look, which eve does not have: the role operator gives it."),
        ("job:kill", "This needs the right job:kill, which eve does not have: one of the roles operator, submitter gives it."),
        (
            "config:edit",
            (
                "This needs the right config:edit, which eve does not have: no role gives it, nor a right of Django's admin; "
                "superusers have it."
            ),
        ),
    ):
        with pytest.raises(Refused) as refused:
            check(auditor, permission, {})
        assert refused.value.detail == said


def test_exports_answer_in_their_own_way(client: Client, session: Client) -> None:
    assert client.get("/tasks.csv")["Content-Type"] == "application/problem+json"
    assert session.get("/tasks.csv").status_code == 200


def test_public_views_are_open(client: Client) -> None:
    assert client.get("/healthz").content == b"ok"
    assert client.get("/api/v1/version/").json() == {"version": 1}


def test_a_bearer_reads_pages_too(alice: User, bearer: Bearer) -> None:
    assert bearer(issue_user_token(alice).text).get("/tasks.csv").status_code == 200


def test_a_session_needs_the_csrf_token_to_change_anything(session: Client) -> None:
    for address, body in (("/api/v1/tasks/", {"name": "t"}), ("/api/v1/kill/7/", {})):
        assert session.get("/api/v1/tasks/").status_code == 200
        refused = session.post(address, body, content_type="application/json")
        assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    session.get("/login/")
    token = session.cookies["csrftoken"].value
    made = session.post("/api/v1/tasks/", {"name": "t"}, content_type="application/json", headers={"X-CSRFToken": token})
    assert made.status_code == 201


def test_a_bearer_request_needs_no_csrf_token_and_has_no_cookies(alice: User, session: Client) -> None:
    ensure_user("root", superuser=True)
    root = Client(enforce_csrf_checks=True)
    root.force_login(User.objects.get(username="root"))
    token = {"Authorization": f"Bearer {issue_user_token(alice).text}"}
    body = {"name": "t"}
    # Root may not submit; that it succeeds shows that the token alone speaks.
    assert root.post("/api/v1/tasks/", body, content_type="application/json", headers=token).status_code == 201
    # The admin knows sessions only: with the header the cookie is gone, so the missing CSRF token opens nothing.
    response = root.post("/admin/access/role/add/", {"user": 1, "vo": "atlas", "role": "operator"}, headers=token)
    assert (response.status_code, response["Location"][:13]) == (302, "/admin/login/")


def test_the_admin_works_for_staff_only(session: Client) -> None:
    assert session.get("/admin/").status_code == 302
    root = Client()
    root.force_login(ensure_user("root", superuser=True))
    index = root.get("/admin/")
    assert index.status_code == 200
    for app in index.context["app_list"]:  # what can be changed stands before what can only be looked at
        editable = [model["perms"]["add"] or model["perms"]["change"] for model in app["models"]]
        assert editable == sorted(editable, reverse=True), app["name"]


def test_an_address_that_is_none_is_told_where_those_are_described(bearer: Bearer) -> None:
    user = ensure_user("op", roles=[("atlas", "operator")])
    answer = bearer(issue_user_token(user).text).post("/api/v1/tasks/7/pause/").json()
    assert (answer["title"], answer["status"]) == ("No such address", 404)
    assert "/api/v1/schema/" in answer["detail"]


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("get", "/api/v1/nothing/", 404),
        ("get", "/api/v1/kill/7/", 405),
        ("put", "/api/v1/tasks/", 405),
        ("options", "/api/v1/tasks/", 405),
        ("options", "/api/v1/grid/", 405),
        ("get", "/api/v1/unavailable/", 503),
        ("post", "/api/v1/kill/10/", 500),
        ("get", "/api/v1/tasks/?x=%00", 400),
        ("get", "/api/v1/tasks/%00/stop/", 400),
    ],
)
def test_every_error_of_the_api_is_a_problem_without_internals(
    bearer: Bearer, method: str, address: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    user = ensure_user("op", roles=[("atlas", "operator")])
    response = getattr(bearer(issue_user_token(user).text), method)(address)
    assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")
    body = response.json()
    assert body["status"] == status
    assert body["trace_id"] == response["X-Trace-Id"]
    assert not any(word in response.text for word in ("10.0.0.7", "internal secret", "Traceback", ".py"))
    if status == 500:
        assert any(body["trace_id"] in record.getMessage() and record.exc_info for record in caplog.records)


def test_a_body_that_breaks_rules_is_422_with_every_fault(alice: User, bearer: Bearer) -> None:
    client = bearer(issue_user_token(alice).text)
    response = client.post("/api/v1/tasks/", {"priority": -1}, content_type="application/json")
    assert response.status_code == 422
    assert {e["field"] for e in response.json()["errors"]} == {"name", "priority"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"name": "\\u0000"}', 400),
        (b'{"name": "\\ud800"}', 400),
        (b'{"name": "a", "name": "b"}', 400),
        (b'{"name": NaN}', 400),
        (b'{"priority": 9223372036854775808, "name": "a"}', 400),
        (b'{"name": "' + b"a" * 5_000_000 + b'"}', 413),
        (b'{"name": "' + b"a" * 4_900_000 + b'"}', 422),
        (b"[]", 422),
        (b"null", 422),
    ],
)
def test_malformed_bodies_are_refused_by_both_kinds_of_views(alice: User, bearer: Bearer, body: bytes, status: int) -> None:
    response = bearer(issue_user_token(alice).text).post("/api/v1/tasks/", body, content_type="application/json")
    assert response.status_code == status
    plain = bearer(mint_job_token(7, 1, 60)).post("/api/v1/jobs/7/report/", body, content_type="application/json")
    # The plain view takes 1 MB and has no rules of its own beyond an object.
    assert plain.status_code == (413 if len(body) > 1_000_000 else 400)


def test_a_form_is_not_taken_for_json(alice: User, bearer: Bearer) -> None:
    response = bearer(issue_user_token(alice).text).post("/api/v1/tasks/", {"name": "t"})
    assert response.status_code == 415


def test_trace_ids_are_ours_and_differ(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    forged = client.get("/healthz", headers={"X-Trace-Id": "forged"})["X-Trace-Id"]
    assert forged != "forged"
    assert forged != client.get("/healthz")["X-Trace-Id"]
    record = logging.LogRecord("x", logging.INFO, "x", 1, "m", (), None)
    assert TraceFilter().filter(record)
    assert record.trace_id == "-"  # type: ignore[attr-defined]


@pytest.mark.parametrize("address", ["/healthz", "/tasks/", "/api/v1/tasks/", "/api/v1/nothing/", "/admin/login/", "/nowhere"])
def test_every_answer_has_the_security_headers(client: Client, address: str) -> None:
    response = client.get(address)
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["X-Frame-Options"] == "DENY"
    assert "no-store" in response["Cache-Control"]


def test_the_admin_needs_no_inline_script_or_style() -> None:
    root = Client()
    root.force_login(ensure_user("root", superuser=True))
    for address in ("/admin/", "/admin/access/user/", "/admin/access/user/add/", "/admin/access/credential/add/"):
        page = root.get(address).text
        assert "<style" not in page
        assert " style=" not in page
        assert " onclick=" not in page
        scripts = [s for s in page.split("<script")[1:] if " src=" not in s.split(">")[0]]
        assert all('type="application/json"' in s.split(">")[0] for s in scripts)


def test_the_permission_of_a_route_is_known_by_its_method() -> None:
    tasks = resolve("/api/v1/tasks/").func
    assert permission_of(tasks, "GET") == permission_of(tasks, "HEAD") == "task:read"
    assert permission_of(tasks, "POST") == "task:submit"
    assert permission_of(tasks, "DELETE") == ""
    assert permission_of(resolve("/healthz").func, "GET") == OPEN
    assert permission_of(resolve("/api/v1/kill/7/").func, "POST") == "task:command"
    assert permission_of(resolve("/admin/access/user/7/password/").func, "POST") == ADMIN
    assert len(list(routes("tests.access.sample_urls"))) > 30


def test_an_enrolment_is_told_what_it_lacks(bearer: Bearer) -> None:
    response = bearer(issue_enrolment("ALPHA").text).get("/api/v1/tasks/")
    assert response.status_code == 403
    assert "task:read" in response.json()["detail"]
