"""What pilots call passes less middleware: whatever is sent there, the answer and the audit are the ones of the whole way."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from broker_site.foundation.access.authentication import forget_verified
from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.access.models import Audit
from broker_site.foundation.access.tokens import mint_job_token
from brokerage.api.pilots import MATCHING, REGISTERING
from brokerage.api.reports import REPORTING
from tests.api.people import Person
from tests.builders import grid

pytestmark = pytest.mark.django_db
OWN_TO_EACH = {"x-trace-id"}
SHORT = "broker_site.roof.web.pilot_verbs.PilotVerbsMiddleware"


def asks(secret: str, user: str) -> list[tuple[str, str, str, bytes, dict[str, str]]]:
    """Method, address, token, body and more headers of each request."""
    job = mint_job_token(7, 1, 60)
    plain = {"content_type": "application/json"}
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


def answers(requests: list[tuple[str, str, str, bytes, dict[str, str]]]) -> list[dict[str, Any]]:
    client, seen = Client(raise_request_exception=False), []
    before = Audit.objects.latest("id").id if Audit.objects.exists() else 0
    for method, path, token, body, more in requests:
        for verb in (REGISTERING, MATCHING, REPORTING):
            verb.forget()
        forget_verified()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = getattr(client, method)(f"/api/v1/{path}", data=body, headers=headers, **more)
        json = answer.headers.get("Content-Type", "").endswith("json")
        seen.append(
            {
                "request": (method, path, body[:40]),
                "status": answer.status_code,
                "headers": {k.lower(): v for k, v in answer.headers.items() if k.lower() not in OWN_TO_EACH},
                "body": {k: v for k, v in answer.json().items() if k != "trace_id"} if json else answer.content,
                "traced": not json or answer.json().get("trace_id", answer["X-Trace-Id"]) == answer["X-Trace-Id"],
                "audit": sorted(
                    Audit.objects.filter(id__gt=before).values_list("who", "act", "object", "outcome", "status", "reason")
                ),
            }
        )
    return seen


def test_the_short_way_gives_the_answers_of_the_whole_one(settings: Settings, olga: Person) -> None:
    grid("ALPHA", "BETA")
    requests = asks(issue_enrolment("ALPHA").text, olga.token)
    short = answers(requests)
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if name != SHORT]
    whole = answers(requests)
    for one, other in zip(short, whole, strict=True):
        assert one == other
    assert all(answer["traced"] for answer in short)
    assert {answer["status"] for answer in short} >= {401, 403, 404, 405, 409, 422}
