"""Random requests to every operation of the OpenAPI document, to pages and to the admin: no answer is a fault of the server."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest
from django.db import transaction
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_site.foundation.access.credentials import ensure_user, issue_enrolment, issue_user_token
from broker_site.foundation.access.tokens import mint_job_token
from tests.builders import grid, parameters, submitted

THOROUGH = settings.get_current_profile_name() == "thorough"

pytestmark = [pytest.mark.django_db, *([pytest.mark.long] if THOROUGH else ())]

NASTY = (
    *(
        "",
        "0",
        "-1",
        "1",
        "9" * 19,
        "9" * 5000,
        "1e400",
        "NaN",
        "null",
        "true",
        "\x00",
        "a\x00b",
        "\ud7ff",
        "é",
        "%",
        "%00",
        "'",
        '"',
    ),
    *(
        "../../etc/passwd",
        "<script>",
        "2026-13-01",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        "*",
        "x" * 300,
        "()",
    ),
)
PAGES = (
    *("/", "/tasks/", "/tasks.json", "/tasks.csv", "/jobs/", "/jobs.json", "/queues/", "/agents.json", "/throttle/", "/shares/"),
    *(
        "/tasks/{id}/",
        "/tasks/{id}/brokerage/",
        "/jobs/{id}/",
        "/queues/{name}/",
        "/login/",
        "/appearance/",
        "/readyz",
        "/metrics",
    ),
    *("/admin/workqueues/task/", "/admin/brokerage/job/", "/admin/access/audit/", "/admin/gdpconfig/override/add/"),
)
KEYS = (
    "vo",
    "status",
    "user_name",
    "task_name",
    "id",
    "cursor",
    "page_size",
    "limit",
    "q",
    "p",
    "o",
    "queue",
    "created_at__gte",
    "live",
)

texts = st.sampled_from(NASTY) | st.text(max_size=8)
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


class Operation(NamedTuple):
    """What the document says of a way to ask."""

    method: str
    path: str
    query: tuple[str, ...]
    members: tuple[str, ...]


@cache
def operations() -> list[Operation]:
    """Read from the document; made once, when it is needed."""
    document = SchemaGenerator().get_schema(request=None, public=True)
    schemas = document["components"]["schemas"]
    found = [Operation("get", path, KEYS, ()) for path in PAGES]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            query = tuple(p["name"] for p in operation.get("parameters", ()) if p["in"] == "query")
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            properties = schemas.get(body.get("$ref", "").rpartition("/")[2], body).get("properties", {})
            found.append(Operation(method, path, query, tuple(properties)))
    return found + [Operation("post", f"/api/v1/{path}", (), members) for path, members in (("tasks/", tuple(parameters())),)]


@pytest.fixture
def callers(db: None) -> list[Client]:
    """Somebody who may do much, by token and by session, and what pilots hold."""
    grid("ALPHA")
    submitted(parameters())
    boss = ensure_user("boss", superuser=True, roles=[("demo", "submitter"), ("demo", "operator")])
    session = Client(raise_request_exception=False)
    session.force_login(boss)
    tokens = (issue_user_token(boss, vo="demo").text, issue_enrolment("ALPHA").text, mint_job_token(1, 1, 600))
    bearers = [Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False) for token in tokens]
    return [session, bearers[0], *bearers]


@settings(
    max_examples=10_000 if THOROUGH else 250,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_request_is_answered_by_a_fault(callers: list[Client], data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(operations()))
    client = data.draw(st.sampled_from(callers))
    path = operation.path
    while "{" in path:
        head, _, rest = path.partition("{")
        path = head + quote(data.draw(st.just("1") | texts), safe="") + rest.partition("}")[2]
    names = st.sampled_from(operation.query) if operation.query else st.sampled_from(KEYS)
    query = urlencode(data.draw(st.lists(st.tuples(names, texts), max_size=3)))
    body, kind = b"", "application/json"
    if operation.method != "get":
        members = data.draw(st.dictionaries(st.sampled_from(operation.members or KEYS), values, max_size=4))
        plain = parameters() if operation.path == "/api/v1/tasks/" else {}
        body = data.draw(st.just(json.dumps({**plain, **members}).encode()) | st.binary(max_size=30))
        kind = data.draw(st.sampled_from([kind, kind, kind, "application/x-www-form-urlencoded", "multipart/form-data", "x"]))
    with transaction.atomic():
        answer = client.generic(operation.method.upper(), path, body, kind, QUERY_STRING=query)
        content = b"".join(answer) if answer.streaming else answer.content
        transaction.set_rollback(True)
    asked = f"{operation.method} {path}?{query} {body[:300]!r}"
    assert answer.status_code < 500 or path == "/readyz", asked
    assert b"Traceback" not in content, asked
    if path.startswith("/api/") and answer.status_code >= 400 and operation.method != "head":
        assert "json" in answer.get("Content-Type", ""), asked
