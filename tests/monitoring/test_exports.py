"""Exports: so many at once of one user and in all, a longest time for each, and their place is free when they are over."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from django.core.cache import cache
from django.test import Client
from pytest_django import Settings

from broker_site.foundation.access import counting
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.gdpconfig import set_override
from tests.builders import parameters, submitted
from tests.monitoring.answers import text
from tests.pages.scene import visitor

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_cache(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_blind_until", 0.0)  # a test before may have found the cache away: nobody asks it for seconds
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "exports"}}
    cache.clear()


def limit(**most: Any) -> None:
    for key, value in most.items():
        set_override("access", key, value, who="root", why="test")


def client(name: str) -> Client:
    made = Client()
    made.force_login(visitor(name))
    return made


def refused(answer: Any, status: int, rule: str) -> bool:
    told = answer.json()
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert rule in told["detail"] and answer["Retry-After"] == "5"
    return True


def test_a_user_has_so_many_exports_at_once_and_one_more_when_one_is_over() -> None:
    limit(EXPORTS_PER_USER=2)
    ada, grace = client("ada"), client("grace")
    first, _second = ada.get("/tasks.csv"), ada.get("/users.csv")
    assert refused(ada.get("/jobs.csv"), 429, "EXPORTS_PER_USER")
    assert ada.get("/jobs.json").status_code == 200
    assert text(grace.get("/tasks.csv")).startswith("id,")
    assert text(first).startswith("id,")
    assert text(ada.get("/jobs.csv")).startswith("id,"), "one that was read to its end is over too"
    assert ada.get("/jobs.csv").status_code == 200
    assert refused(ada.get("/jobs.csv"), 429, "EXPORTS_PER_USER")


def test_all_users_have_so_many_together_and_who_is_refused_holds_nothing() -> None:
    limit(EXPORTS_AT_ONCE=1, EXPORTS_PER_USER=1)
    ada, grace = client("ada"), client("grace")
    held = ada.get("/tasks.csv")
    assert refused(grace.get("/tasks.csv"), 503, "EXPORTS_AT_ONCE")
    assert text(held).startswith("id,")
    assert grace.get("/tasks.csv").status_code == 200, "the place of her own that she took first was given back"
    limit(EXPORTS_AT_ONCE=0, EXPORTS_PER_USER=0)
    assert {grace.get("/tasks.csv").status_code for _ in range(5)} == {200}


def test_an_export_that_takes_too_long_ends_and_names_the_limit() -> None:
    submitted(parameters("t"))
    limit(EXPORT_TIME=1)
    with patch("monitoring.views.export.time") as time:
        time.monotonic.side_effect = [0.0, 0.5, 2.0]
        sent = client("ada").get("/tasks.csv")
        rows = iter(sent)
        assert next(rows).startswith(b"id,")
        with pytest.raises(Refused, match=r"at most 1 s \(EXPORT_TIME\)"):
            next(rows)


def test_without_the_cache_nothing_is_limited(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_blind_until", 0.0)
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
            "OPTIONS": {"socket_connect_timeout": 0.2, "socket_timeout": 0.2},
        }
    }
    limit(EXPORTS_PER_USER=1)
    ada = client("ada")
    assert {ada.get("/tasks.csv").status_code for _ in range(3)} == {200}
