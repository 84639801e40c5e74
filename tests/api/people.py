"""Users of the REST tests as clients, each with a token of its own, and what tests ask of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.test import Client

from broker_site.foundation.access.credentials import ensure_user, issue_user_token


@dataclass(frozen=True, slots=True)
class Person:
    """A user with a token; `get`, `post` and `patch` go to /api/v1/."""

    name: str
    token: str

    def get(self, path: str, **query: Any) -> Any:
        return self._client().get(f"/api/v1/{path}", query)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        return self._client().post(f"/api/v1/{path}", data, content_type="application/json", headers=headers)

    def patch(self, path: str, body: Any) -> Any:
        return self._client().patch(f"/api/v1/{path}", json.dumps(body), content_type="application/json")

    def delete(self, path: str) -> Any:
        return self._client().delete(f"/api/v1/{path}")

    def submit(self, params: Any, key: str = "") -> Any:
        return self.post("tasks/", params, **({"Idempotency-Key": key} if key else {}))

    def _client(self) -> Client:
        return Client(headers={"Authorization": f"Bearer {self.token}"}, raise_request_exception=False)


def person(name: str, *roles: tuple[str, str], superuser: bool = False) -> Person:
    """Somebody with roles, each (VO, role)."""
    return Person(name, issue_user_token(ensure_user(name, roles=list(roles), superuser=superuser)).text)


def faults(answer: Any, status: int = 422) -> set[tuple[str, str]]:
    """Field and rule of each fault of a refusal."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["trace_id"]
    return {(e["field"], e["rule"]) for e in body.get("errors", [])}


def ids(answer: Any) -> list[int]:
    """The numbers of the rows of a page."""
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


def refused(answers: Iterable[Any], status: int) -> bool:
    """Whether every answer is this refusal."""
    return {a.status_code for a in answers} == {status}
