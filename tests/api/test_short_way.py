"""What pilots call goes past Django's handler: whatever is sent there, the answer and the audit are the ones of the whole way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from broker_site.foundation.access.authentication import forget_verified
from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.access.models import Audit
from broker_site.foundation.access.tokens import mint_job_token
from broker_site.roof.web.pilot_verbs import PilotVerbs, Unanswered
from brokerage.api.matching import MATCHING
from brokerage.api.pilots import REGISTERING
from brokerage.api.reports import REPORTING
from tests.api.people import Person
from tests.builders import grid

pytestmark = pytest.mark.django_db
OWN_TO_EACH = {"x-trace-id"}
Request = tuple[str, str, str, bytes, dict[str, Any]]


def asks(secret: str, user: str) -> list[Request]:
    """Method, address, token, body and more headers of each request."""
    job = mint_job_token(7, 1, 60)
    plain: dict[str, Any] = {"content_type": "application/json"}
    return [
        ("post", "pilots/", "", b"{}", plain),
        ("post", "pilots/", "gbe_wrong", b"{}", plain),
        ("post", "pilots/", user, b"{}", plain),
        ("post", "pilots/", secret, b"{}", plain),
        ("post", "pilots/", secret, b'{"queue": "ALPHA", "cores": 0}', plain),
        ("post", "pilots/", secret, b'{"queue": "BETA", "host": "h", "slot": "s", "cores": 1}', plain),
        ("post", "pilots/", secret, b"{", plain),
        ("post", "pilots/", secret, b"[" * 5000, plain),
        ("post", "pilots/", secret, b'{"a": "\x00"}', {"content_type": "text/plain"}),
        ("post", "pilots/match/", secret, b"{}", plain),
        ("post", "pilots/nothing/", secret, b"{}", plain),
        ("post", "pilots", secret, b"{}", plain),
        ("post", "pilots/match/", secret, b"{}", plain | {"HTTP_HOST": "evil.example"}),
        ("get", "pilots/", secret, b"", {}),
        ("options", "pilots/match/", secret, b"", {}),
        ("put", "jobs/7/heartbeat/", job, b"{}", plain),
        ("post", "jobs/7/heartbeat/", job, b'{"status": "running"}', plain),
        ("post", "jobs/7/heartbeat/", job, b'{"status": "flying"}', plain),
        ("post", "jobs/7/report/", job, b'{"status": "finished"}', plain),
        ("post", "jobs/8/report/", job, b'{"status": "finished"}', plain),
        ("post", f"jobs/{'9' * 40}/report/", job, b'{"status": "finished"}', plain),
        ("post", "jobs/x/report/", job, b"{}", plain),
    ]


class ShortWay(Client):
    """A client whose requests are answered as the web server does it."""

    def request(self, **request: Any) -> Any:
        verbs = PilotVerbs()
        found = verbs.begin(self._base_environ(**request))  # type: ignore[attr-defined]
        if isinstance(found, Unanswered):
            ((_, found),) = verbs.end([found])
        return super().request(**request) if found is None else found


def answers(client: Client, requests: list[Request]) -> list[dict[str, Any]]:
    seen = []
    before = Audit.objects.latest("id").id if Audit.objects.exists() else 0
    for method, path, token, body, more in requests:
        for verb in (REGISTERING, MATCHING, REPORTING):
            verb.forget()
        forget_verified()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = getattr(client, method)(f"/api/v1/{path}", data=body, headers=headers, **more)
        found = json.loads(answer.content) if answer.headers.get("Content-Type", "").endswith("json") else {}
        seen.append(
            {
                "request": (method, path, body[:40]),
                "status": answer.status_code,
                "headers": {k.lower(): v for k, v in answer.headers.items() if k.lower() not in OWN_TO_EACH},
                "body": {k: v for k, v in found.items() if k != "trace_id"} or answer.content,
                "traced": found.get("trace_id", answer["X-Trace-Id"]) == answer["X-Trace-Id"],
                "audit": sorted(
                    Audit.objects.filter(id__gt=before).values_list("who", "act", "object", "outcome", "status", "reason")
                ),
            }
        )
    return seen


def test_the_short_way_gives_the_answers_of_the_whole_one(olga: Person) -> None:
    grid("ALPHA", "BETA")
    requests = asks(issue_enrolment("ALPHA").text, olga.token)
    short = answers(ShortWay(raise_request_exception=False), requests)
    whole = answers(Client(raise_request_exception=False), requests)
    for one, other in zip(short, whole, strict=True):
        assert one == other
    assert all(answer["traced"] for answer in short)
    assert {answer["status"] for answer in short} >= {401, 403, 404, 405, 409, 422}


@pytest.mark.parametrize("secure", [False, True])
def test_tls_is_asked_for_and_promised_there_too(settings: Settings, secure: bool) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = True, 3600
    request: list[Request] = [
        (
            "post",
            "jobs/7/heartbeat/",
            mint_job_token(7, 1, 60),
            b'{"status": "running"}',
            {"content_type": "application/json", "secure": secure},
        )
    ]
    (short,) = answers(ShortWay(), request)
    (whole,) = answers(Client(), request)
    assert short == whole
    assert short["status"] == (409 if secure else 301)
    assert ("strict-transport-security" in short["headers"]) == secure
