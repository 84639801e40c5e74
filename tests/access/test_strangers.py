"""Callers without a good credential: limited by address before anything is looked up, with a bounded number of audit rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from broker_site.foundation.access import strangers
from broker_site.foundation.access.credentials import issue_enrolment, issue_user_token
from broker_site.foundation.access.models import Audit, User
from broker_site.foundation.access.strangers import ROWS, WINDOW_S
from broker_site.foundation.access.tokens import mint_job_token

Bearer = Callable[[str], Client]
JSON = "application/json"
FALSE = "gbu_" + "x" * 43
BURST = 30

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sample_site")]


class Clock:
    """The strangers' time, set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(strangers, "time", own)
    monkeypatch.setattr(strangers, "BURST", BURST)
    return own


def submit(client: Client, address: str = "192.0.2.7") -> int:
    return client.post("/api/v1/tasks/", {"name": "t"}, content_type=JSON, REMOTE_ADDR=address).status_code


@pytest.mark.parametrize("token", ["", FALSE])
def test_an_address_that_only_fails_is_refused_without_a_query_and_another_is_not(
    client: Client, bearer: Bearer, clock: Clock, token: str
) -> None:
    caller = bearer(token) if token else client
    assert {submit(caller) for _ in range(BURST)} == {401}
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = caller.post("/api/v1/tasks/", {}, content_type=JSON, REMOTE_ADDR="192.0.2.7")
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) >= 1
    assert len(queries) == 0
    assert submit(caller, "192.0.2.8") == 401
    clock.now += 1
    assert submit(caller) == 401


def test_who_has_a_good_credential_is_served_whoever_shares_the_address(alice: User, bearer: Bearer, clock: Clock) -> None:
    known, new = bearer(issue_user_token(alice).text), bearer(issue_user_token(alice).text)
    enrolled = bearer(issue_enrolment("ALPHA").text)
    assert submit(known) == 201
    assert enrolled.post("/api/v1/pilots/", {}, content_type=JSON, REMOTE_ADDR="192.0.2.7").status_code == 200
    for _ in range(BURST):
        submit(bearer(FALSE))
    assert submit(bearer(FALSE)) == 429
    assert submit(known) == 201
    assert enrolled.post("/api/v1/pilots/", {}, content_type=JSON, REMOTE_ADDR="192.0.2.7").status_code == 200
    job = bearer(mint_job_token(7, 1, 60))
    assert job.post("/api/v1/jobs/7/report/", {}, content_type=JSON, REMOTE_ADDR="192.0.2.7").status_code == 200
    assert submit(new) == 429  # what nobody has seen yet waits, a second here
    clock.now += 1
    assert submit(new) == 201


def test_a_session_that_is_none_does_not_lift_the_limit_and_a_good_one_does(client: Client, alice: User, clock: Clock) -> None:
    signed_in = Client()
    signed_in.force_login(alice)
    assert submit(signed_in) == 201
    client.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    assert {submit(client) for _ in range(BURST)} == {401}
    assert submit(client) == 429
    assert submit(signed_in) == 201


def test_failures_beyond_the_first_share_a_row_that_says_how_many(client: Client, clock: Clock) -> None:
    for _ in range(BURST + 50):
        submit(client)
    rows = Audit.objects.filter(who="anonymous")
    assert rows.count() == ROWS
    assert rows[0].after == {"address": "192.0.2.7"}
    clock.now += WINDOW_S
    submit(client, "192.0.2.8")
    shared = rows.get(act="stranger")
    assert (shared.object, shared.outcome, shared.after) == ("address 192.0.2.7", "refused", {"calls": BURST + 50 - ROWS})
    assert shared.reason == f"{BURST + 50 - ROWS} further calls without a good credential from this address in 60 s"
    clock.now += WINDOW_S
    submit(client, "192.0.2.8")
    assert rows.filter(act="stranger").count() == 1


@pytest.mark.parametrize(
    ("sent", "counted"),
    [
        ({"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "198.51.100.1"}, "10.0.0.1"),  # nobody vouches for it
        (
            {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_PROTO": "https", "HTTP_X_FORWARDED_FOR": "1.2.3.4, 198.51.100.1"},
            "198.51.100.1",
        ),
        ({"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_PROTO": "https"}, "10.0.0.1"),
        ({"REMOTE_ADDR": "2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::/64"),
    ],
)
def test_the_address_is_the_one_that_the_tls_proxy_saw(
    client: Client, settings: Settings, sent: dict[str, str], counted: str
) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    client.post("/api/v1/tasks/", {"name": "t"}, content_type=JSON, **sent)  # type: ignore[arg-type]
    assert Audit.objects.get(who="anonymous").after == {"address": counted}


def test_many_addresses_take_bounded_memory(client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "MOST_ADDRESSES", 3)
    for i in range(40):
        submit(client, f"192.0.2.{i}")
    assert Audit.objects.filter(who="anonymous").count() == 3 + ROWS
