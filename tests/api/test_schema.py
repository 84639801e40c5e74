"""The OpenAPI document: made without a warning, behind the login, true to the routes, and it says what a task cannot use yet."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from broker_site.foundation.access.routes import routes
from tests.api.people import Person
from workqueues.rules.task_parameters import TASK_PARAMETERS, not_yet

SCHEMA = "/api/v1/schema/"


@pytest.fixture
def document(ada: Person) -> dict[str, Any]:
    answer = ada._client().get("/api/v1/schema/?format=json", headers={"Accept": "application/vnd.oai.openapi+json"})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_it_is_made_without_a_warning(tmp_path: Any) -> None:
    made = tmp_path / "schema.yaml"
    call_command("spectacular", "--fail-on-warn", "--validate", "--file", str(made))  # a warning raises
    assert made.read_text().startswith("openapi: 3.")


@pytest.mark.django_db
def test_it_is_not_for_strangers() -> None:
    assert Client().get("/api/v1/schema/").status_code == 401


@pytest.mark.django_db
def test_it_has_every_route_that_users_or_pilots_may_call(document: dict[str, Any], settings: Settings) -> None:
    told = {
        (path.replace("{", "<").replace("}", ">"), method.upper()) for path, item in document["paths"].items() for method in item
    }
    wanted = {
        (re.sub(r"<\w+:", "<", route.address), method)
        for route in routes(settings.ROOT_URLCONF)
        if route.address.startswith("/api/v1/") and route.address != SCHEMA
        for method in (route.methods if hasattr(route.callback, "cls") else ["POST"])
        if method != "HEAD"
    }
    assert told == wanted


@pytest.mark.django_db
def test_every_operation_has_a_summary_and_tells_its_refusals(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert operation["summary"], path
            assert {"401", "403"} <= set(operation["responses"]), path
            assert "{" not in path or {"404", "409"} & set(operation["responses"]), path
            assert method != "post" or "422" in operation["responses"], path


@pytest.mark.django_db
def test_the_submission_tells_every_parameter_and_those_that_do_not_work_yet(document: dict[str, Any]) -> None:
    post = document["paths"]["/api/v1/tasks/"]["post"]
    properties = post["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert set(properties) == {name for name, p in TASK_PARAMETERS.items() if p.supported}
    for name in not_yet():
        assert f"`{name}`" in post["description"]
    assert any(p["name"] == "Idempotency-Key" and p["in"] == "header" for p in post["parameters"])
