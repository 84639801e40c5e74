"""Problems: each error has its status, its words, its faults and the trace id, and tells nothing of the inside."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from django.test import RequestFactory
from rest_framework import exceptions

from broker_site.foundation.access.problems import Refused, answer_to, problem_response
from broker_site.foundation.kernel.verdict import Problem


def test_a_problem_has_the_fields_of_the_standard_and_ours() -> None:
    response = problem_response(422, "Not valid", "See errors.", [Problem("nFilesPerJob", "range", "at least 1")])
    assert response["Content-Type"] == "application/problem+json"
    assert json.loads(response.content) == {
        "type": "urn:gridbroker:problem:not-valid",
        "title": "Not valid",
        "status": 422,
        "detail": "See errors.",
        "trace_id": "",
        "errors": [{"field": "nFilesPerJob", "rule": "range", "message": "at least 1"}],
    }


def test_without_a_title_the_status_speaks() -> None:
    body = json.loads(problem_response(404).content)
    assert (body["type"], body["title"]) == ("about:blank", "Not Found")
    assert json.loads(problem_response(599).content)["title"] == "Status 599"


@pytest.mark.parametrize(
    ("exc", "status"),
    [
        (Refused(409, "Stale epoch"), 409),
        (Http404("Task matching query"), 404),
        (PermissionDenied("no"), 403),
        (RequestDataTooBig(), 413),
        (SuspiciousOperation("secret path"), 400),
        (UnreadablePostError("reset"), 400),
        (OperationalError("connection to server at 10.0.0.7 failed"), 503),
        (InterfaceError("connection already closed"), 503),
        (exceptions.ParseError(), 400),
        (exceptions.NotAuthenticated(), 401),
        (exceptions.AuthenticationFailed(), 401),
        (exceptions.PermissionDenied(), 403),
        (exceptions.NotFound(), 404),
        (exceptions.MethodNotAllowed("PUT"), 405),
        (exceptions.NotAcceptable(), 406),
        (exceptions.UnsupportedMediaType("text/plain"), 415),
        (exceptions.ValidationError({"a": ["wrong"]}), 422),
        (exceptions.Throttled(wait=12), 429),
        (KeyError("password"), 500),
        (RecursionError(), 500),
    ],
)
def test_each_exception_has_its_status_and_none_shows_internals(exc: Exception, status: int) -> None:
    response = answer_to(exc)
    assert response.status_code == status
    for inside in (b"10.0.0.7", b"password", b"secret path", b"Traceback", b"matching query"):
        assert inside not in response.content


def test_a_fault_is_logged_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer_to(KeyError("password"))
    assert any(record.exc_info and "trace id" in record.getMessage() for record in caplog.records)


def test_who_must_wait_or_sign_in_is_told_by_header() -> None:
    assert answer_to(exceptions.Throttled(wait=12))["Retry-After"] == "12"
    assert answer_to(OperationalError())["Retry-After"]
    assert answer_to(exceptions.NotAuthenticated())["WWW-Authenticate"].startswith("Bearer")


def test_nested_faults_become_a_flat_list() -> None:
    detail: Any = {"log": {"value": ["required"]}, "items": [{}, {"n": ["too small"]}], "non_field_errors": ["together wrong"]}
    errors = json.loads(answer_to(exceptions.ValidationError(detail)).content)["errors"]
    assert errors == [
        {"field": "log.value", "rule": "invalid", "message": "required"},
        {"field": "items.1.n", "rule": "invalid", "message": "too small"},
        {"field": "", "rule": "invalid", "message": "together wrong"},
    ]


def test_a_wrong_filter_is_400_where_a_wrong_body_is_422() -> None:
    wrong = exceptions.ValidationError({"status": ["not a choice"]})
    assert answer_to(wrong, RequestFactory().get("/api/v1/tasks/")).status_code == 400
    assert answer_to(wrong, RequestFactory().post("/api/v1/tasks/")).status_code == 422
