"""One's own tokens: made with limits and an end, shown once, never more than the one that made them, revoked."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from pytest_django import Settings

from broker_site.foundation.access.authentication import forget_verified
from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.access.models import Credential
from broker_site.foundation.gdpconfig import set_override

AT = "/api/v1/tokens/"

pytestmark = pytest.mark.django_db


def bearer(text: str) -> Client:
    return Client(HTTP_AUTHORIZATION=f"Bearer {text}")


def post(browser: Client, **body: Any) -> Any:
    return browser.post(AT, body, "application/json")


def fields(answer: Any) -> set[str]:
    return {error["field"] for error in answer.json()["errors"]}


def test_a_token_is_made_used_listed_without_its_text_and_revoked() -> None:
    ada = ensure_user("ada", roles=[("demo", "submitter"), ("demo", "operator"), ("cms", "auditor")])
    first = bearer(issue_user_token(ada).text)
    made = post(first, vo="demo", roles=["submitter"], days=7, note="laptop")
    assert made.status_code == 201, made.json()
    assert made.headers["Cache-Control"] == "no-store"
    row, text = made.json(), made.json()["token"]
    assert (row["vo"], row["roles"], row["note"], text.startswith(row["prefix"])) == ("demo", ["submitter"], "laptop", True)
    listed = first.get(AT).json()["results"]
    assert listed[0]["id"] == row["id"]
    assert text not in str(listed)
    limited = bearer(text)
    assert limited.get("/api/v1/tasks/").status_code == 200
    # What a token makes has no more than that one.
    assert fields(post(limited)) == {"vo", "roles", "days"}
    assert fields(post(limited, vo="demo", roles=["operator"], days=1)) == {"roles"}
    assert post(limited, vo="demo", roles=["submitter"], days=1).status_code == 201
    # Nor does it see or end another one than itself.
    assert [each["id"] for each in limited.get(AT).json()["results"]] == [row["id"]]
    assert limited.get("/me/tokens/").content.count(b"Revoke gbu_") == 1
    unlimited = Credential.objects.exclude(id=row["id"]).order_by("id")[0]
    assert limited.delete(f"{AT}{unlimited.id}/").status_code == 404
    other = bearer(issue_user_token(ensure_user("bob", roles=[("demo", "operator")])).text)
    assert other.delete(f"{AT}{row['id']}/").status_code == 404
    assert first.delete(f"{AT}{row['id']}/").status_code == 204
    forget_verified()
    assert limited.get("/api/v1/tasks/").status_code == 401


def test_a_token_that_has_made_all_its_requests_can_still_revoke_itself_and_nothing_else(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    within_a_minute = SimpleNamespace(time=lambda: 1_800_000_000.0)
    monkeypatch.setattr("broker_site.foundation.access.token_limit.time", within_a_minute)
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "tokens"}}
    cache.clear()
    issued, other = (issue_user_token(ensure_user("ada", roles=[("demo", "submitter")])) for _ in range(2))
    for key in ("TOKEN_REQUESTS_PER_MINUTE", "USER_REQUESTS_PER_MINUTE"):
        set_override("access", key, 1, who="root", why="test")
    token = bearer(issued.text)
    assert [token.get(AT).status_code for _ in range(2)] == [200, 429]
    assert token.delete(f"{AT}{other.credential.id}/").status_code == 429
    assert token.get(f"{AT}{issued.credential.id}/").status_code == 429
    assert token.delete(f"{AT}{issued.credential.id}/").status_code == 204
    forget_verified()
    assert token.get(AT).status_code == 401


def test_bad_wishes_are_told_by_their_field_and_make_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = bearer(issue_user_token(ensure_user("ada", roles=[("demo", "submitter")])).text)
    for asked, field in (
        ({"vo": "atlas"}, "vo"),
        ({"roles": ["king"]}, "roles"),
        ({"roles": ["operator"]}, "roles"),
        ({"days": 0}, "days"),
        ({"days": 366}, "days"),
    ):
        answer = post(first, **asked)
        assert (answer.status_code, fields(answer)) == (422, {field}), asked
    assert Credential.objects.count() == 1
    monkeypatch.setattr("brokerage.api.tokens.MOST_TOKENS", 2)
    assert post(first).status_code == 201
    assert post(first).status_code == 422


def test_the_page_makes_one_shows_it_once_and_revokes_it() -> None:
    ada = ensure_user("ada", roles=[("demo", "submitter")])
    ada.set_password("correct horse")
    ada.save()
    browser = Client()
    browser.force_login(ada)
    session = browser.session
    session["password"] = 0
    session.save()
    form = {"vo": "demo", "roles": ["submitter"], "days": "30", "note": "scripts & more"}
    refused: Any = browser.post("/me/tokens/make/", form)
    assert "Your password again" in browser.get(refused.url).content.decode()
    bad: Any = browser.post("/me/tokens/make/", form | {"days": "many", "password_again": "correct horse"})
    kept = browser.get(bad.url).content.decode()
    assert "days: days are 1 to 365" in kept
    assert 'value="scripts &amp; more"' in kept
    made = browser.post("/me/tokens/make/", form)
    found = re.search(r"gbu_[A-Za-z0-9_-]{43}", made.content.decode())
    assert found is not None
    assert made.content.decode().count(found[0]) == 1, "no form of the page sends it on"
    assert bearer(found[0]).get("/api/v1/tasks/").status_code == 200
    page = browser.get("/me/tokens/").content.decode()
    assert found[0] not in page
    assert found[0][:12] in page
    row = Credential.objects.get()
    browser.post(f"/me/tokens/{row.id}/revoke/")
    row.refresh_from_db()
    assert row.revoked_at is not None
    stranger = Client()
    stranger.force_login(ensure_user("bob", roles=[("demo", "submitter")]))
    assert stranger.post(f"/me/tokens/{row.id}/revoke/").status_code == 404
