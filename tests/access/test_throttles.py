"""Limits of submissions: too many are 429 with the time to wait, per credential; without Redis work goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.test import Client
from pytest_django import Settings

from broker_site.foundation.access import counting, token_limit
from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.access.models import User
from broker_site.foundation.gdpconfig import set_override

Bearer = Callable[[str], Client]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sample_site")]


@pytest.fixture(autouse=True)
def two_an_hour(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": {"submit": "2/hour"}}
    monkeypatch.setattr(counting, "_blind_until", 0.0)
    cache.clear()


def submit(client: Client) -> int:
    return client.post("/api/v1/tasks/", {"name": "t"}, content_type="application/json").status_code


def test_one_too_many_must_wait_and_the_others_need_not(alice: User, bearer: Bearer) -> None:
    client = bearer(issue_user_token(alice).text)
    assert [submit(client), submit(client), submit(client)] == [201, 201, 429]
    refused = client.post("/api/v1/tasks/", {"name": "t"}, content_type="application/json")
    assert 1 <= int(refused["Retry-After"]) <= 3600
    assert refused["Content-Type"] == "application/problem+json"
    assert client.get("/api/v1/tasks/").status_code == 200
    assert submit(bearer(issue_user_token(ensure_user("bob", roles=[("atlas", "submitter")])).text)) == 201


@pytest.mark.servers
def test_the_count_is_kept_in_redis_for_all_web_processes(
    alice: User, bearer: Bearer, settings: Settings, redis_url: str
) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": redis_url}}
    client = bearer(issue_user_token(alice).text)
    assert [submit(client), submit(client), submit(client)] == [201, 201, 429]


def test_without_redis_nothing_is_limited_and_nothing_waits(alice: User, bearer: Bearer, settings: Settings) -> None:
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
            "OPTIONS": {"socket_connect_timeout": 0.2, "socket_timeout": 0.2},
        }
    }
    client = bearer(issue_user_token(alice).text)
    assert [submit(client) for _ in range(5)] == [201] * 5
    assert counting._blind_until > 0


def test_a_token_has_so_many_requests_a_minute_its_user_and_other_tokens_more(
    alice: User, bearer: Bearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_override("access", "TOKEN_REQUESTS_PER_MINUTE", 2, who="root", why="test")
    monkeypatch.setattr(token_limit, "time", Clock(1_000_000_015.0))
    busy, other = bearer(issue_user_token(alice).text), bearer(issue_user_token(alice).text)
    assert [busy.get("/api/v1/tasks/").status_code for _ in range(3)] == [200, 200, 429]
    refused = busy.get("/api/v1/tasks/")
    assert (refused["Content-Type"], refused["Retry-After"]) == ("application/problem+json", "5")
    assert "its 2 requests of this minute" in refused.json()["detail"]
    assert other.get("/api/v1/tasks/").status_code == 200
    signed_in = Client()
    signed_in.force_login(alice)
    assert {signed_in.get("/api/v1/tasks/").status_code for _ in range(4)} == {200}
    token_limit.time.now += 5  # type: ignore[attr-defined]
    assert busy.get("/api/v1/tasks/").status_code == 200
    set_override("access", "TOKEN_REQUESTS_PER_MINUTE", 0, who="root", why="test")
    assert {busy.get("/api/v1/tasks/").status_code for _ in range(4)} == {200}


def test_more_tokens_do_not_lift_the_limit_of_their_user(alice: User, bearer: Bearer, monkeypatch: pytest.MonkeyPatch) -> None:
    set_override("access", "USER_REQUESTS_PER_MINUTE", 3, who="root", why="test")
    monkeypatch.setattr(token_limit, "time", Clock(1_000_000_015.0))
    tokens = [bearer(issue_user_token(alice).text) for _ in range(5)]
    assert [token.get("/api/v1/tasks/").status_code for token in tokens] == [200, 200, 200, 429, 429]
    refused = tokens[4].get("/api/v1/tasks/")
    assert (refused["Content-Type"], refused["Retry-After"]) == ("application/problem+json", "5")
    assert "USER_REQUESTS_PER_MINUTE" in refused.json()["detail"]
    other = bearer(issue_user_token(ensure_user("bob", roles=[("atlas", "submitter")])).text)
    assert other.get("/api/v1/tasks/").status_code == 200


class Clock:
    """Stands where the module `time` does."""

    def __init__(self, now: float) -> None:
        self.now = now

    def time(self) -> float:
        return self.now
