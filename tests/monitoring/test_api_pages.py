"""The pages of the REST API: all operations, and one with its parameters, an example and its answers."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.api.people import person

pytestmark = pytest.mark.django_db


def test_whoever_may_read_the_document_finds_each_operation_and_what_it_takes() -> None:
    ada = Client(headers={"Authorization": f"Bearer {person('ada', ('demo', 'submitter')).token}"})
    listed = ada.get("/api/").content.decode()
    assert '<a href="/api/tasks_create/">' in listed
    one = ada.get("/api/tasks_create/").content.decode()
    assert "POST /api/v1/tasks/" in one
    assert '<th scope="row" class="mono">taskName</th>' in one
    assert ada.get("/api/nothing-like-it/").status_code == 404


def test_nobody_else_sees_them() -> None:
    assert Client().get("/api/").status_code == 302
