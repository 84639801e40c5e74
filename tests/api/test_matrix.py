"""Walks all routes of the site: each has a permission, and each kind of caller is answered as the matrix says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import pytest
from django.conf import settings
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client
from django.urls import resolve
from pytest_django import Settings

from broker_site.foundation.access.permissions import ADMIN
from broker_site.foundation.access.routes import Route, route_errors, routes
from tests.api.matrix import SESSIONS, Caller, address, callers, expected, methods, missing

SAMPLE = "tests.access.sample_urls"

Addresses = list[tuple[str, Route]]

SHARING = 12
"""At least so many routes share the callers of one test: to make them takes as long as to ask a few."""


def tried(urlconf: str) -> Addresses:
    """Every route with the address that is tried, by address."""
    return sorted(((address(route), route) for route in routes(urlconf)), key=lambda pair: pair[0])


def groups(urlconf: str) -> Iterator[tuple[str, Addresses]]:
    """The routes in groups that share the callers of one test, named as the first begins: `/admin/access`, `/api/v1/tasks`."""
    name, together = "", Addresses()
    for prefix, pairs in groupby(tried(urlconf), key=lambda pair: "/".join(pair[0].split("/")[: 4 if "/api/" in pair[0] else 3])):
        name = name or prefix
        together += pairs
        if len(together) >= SHARING:
            yield name, together
            name, together = "", Addresses()
    if together:
        yield name, together


def wrong_answers(pairs: Addresses) -> list[str]:
    """Every cell of the matrix in which the site answers otherwise than it must."""
    asking = callers()
    return [
        f"{method} {path} by {caller.name} ({permission}): {response.status_code}, expected {answer}"
        for path, route in pairs
        for method, permission in methods(route)
        for caller in asking
        if permission != ADMIN or caller.name in SESSIONS
        for answer in [expected(permission, caller.name, path)]
        for response in [ask(caller, method, path)]
        if not answer.fits(response.status_code, response.headers.get("Location", ""))
    ]


def ask(caller: Caller, method: str, path: str) -> HttpResponseBase:
    """One request with an empty JSON object as its body (the admin: an empty form); what it changes is undone."""
    with transaction.atomic():
        client: Client = caller.client()
        if method != "GET" and not path.startswith("/admin/"):
            response: HttpResponseBase = client.generic(method, path, b"{}", content_type="application/json")
        else:
            response = client.generic(method, path)
        transaction.set_rollback(True)
    return response


def test_no_route_is_without_a_permission() -> None:
    assert route_errors(settings.ROOT_URLCONF) == []


def test_the_matrix_speaks_of_every_permission() -> None:
    assert missing() == set()


def test_every_address_that_is_tried_leads_somewhere() -> None:
    assert [path for path, _ in tried(settings.ROOT_URLCONF) if resolve(path).func is None] == []


@pytest.mark.django_db(databases="__all__")
@pytest.mark.parametrize("pairs", [pytest.param(pairs, id=prefix) for prefix, pairs in groups(settings.ROOT_URLCONF)])
def test_every_kind_of_caller_is_answered_as_the_matrix_says(pairs: Addresses) -> None:
    assert wrong_answers(pairs) == []


@pytest.mark.django_db
def test_the_walk_finds_a_guard_that_lets_the_wrong_ones_in(settings: Settings) -> None:
    settings.ROOT_URLCONF = SAMPLE
    pairs = [(path, route) for path, route in tried(SAMPLE) if path.endswith(("/grid/", "/report/", "/tasks/"))]
    assert wrong_answers(pairs) == []
    path, route = next(pair for pair in pairs if pair[0].endswith("/grid/"))
    lying = Route(route.patterns, route.callback, {"GET": "task:submit"})
    let_in = {"superuser", "superuser-session", "production", "operator", "share-editor", "auditor"}
    assert {answer.split()[3] for answer in wrong_answers([(path, lying)])} == let_in
