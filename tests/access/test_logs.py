"""What the log says of requests that are no fault of ours."""

from __future__ import annotations

import logging

import pytest
from django.test import Client
from pytest_django import Settings

from broker_site.foundation.logs import OneLine


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/api/v1/tasks/", "/admin/"])
def test_a_request_for_a_foreign_host_is_one_warning_line(
    path: str, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALLOWED_HOSTS = ["broker.example"]
    answer = Client(raise_request_exception=False).get(path, headers={"Host": "elsewhere.example"})
    assert answer.status_code == 400
    (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert record.levelname == "WARNING"
    line = OneLine().format(record)
    assert "elsewhere.example" in line
    assert "\n" not in line
