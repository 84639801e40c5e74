"""Keys that take two people: proposed by one and approved by another, never by its author; refused, withdrawn, ended."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from broker_site.env import Env
from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.access.models import Audit
from broker_site.foundation.gdpconfig.models import ChangeSet, Override, Proposal
from broker_site.foundation.gdpconfig.proposals import end_proposals
from broker_site.foundation.kernel import clock

CHANGES, PROPOSALS = "/api/v1/config/changes/", "/api/v1/config/proposals/"
ADD = "/admin/gdpconfig/override/add/"
LINES = [{"key": "feeds.FEED_MAX_LOSS", "value": "0.5"}, {"key": "jobbroker.NQUEUED_SAT_CAP", "value": "150"}]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def two_person(settings: Any) -> None:
    settings.TWO_PERSON = True


def caller(name: str) -> Client:
    return Client(HTTP_AUTHORIZATION=f"Bearer {issue_user_token(ensure_user(name, superuser=True)).text}")


def page(name: str) -> Client:
    made = Client()
    user = ensure_user(name, superuser=True)
    user.set_password("correct horse")
    user.save()
    made.force_login(user)
    return made


def post(browser: Client, at: str, **body: Any) -> Any:
    return browser.post(at, body, "application/json")


def test_one_proposes_and_another_approves() -> None:
    ann, bob = caller("ann"), caller("bob")
    alone = post(ann, CHANGES, lines=LINES, reason="more may go")
    assert (alone.status_code, [(e["field"], e["rule"]) for e in alone.json()["errors"]]) == (422, [("lines[0]", "two_person")])
    assert post(ann, CHANGES, lines=LINES[1:], reason="no second person for this").status_code == 201
    made = post(ann, PROPOSALS, lines=[LINES[0], {**LINES[1], "value": "160"}], reason="more may go")
    assert made.status_code == 201, made.json()
    at = f"{PROPOSALS}{made.json()['id']}/"
    assert gdpconfig.value("feeds", "FEED_MAX_LOSS") == 0.2
    own = post(ann, f"{at}approve/")
    assert (own.status_code, own.json()["errors"][0]["rule"]) == (422, "author")
    done = post(bob, f"{at}approve/")
    assert (done.status_code, done.json()["outcome"], done.json()["decided_by"], done.json()["revision"]) == (
        200,
        "approved",
        "bob",
        2,
    )
    gdpconfig.forget()
    assert gdpconfig.value("feeds", "FEED_MAX_LOSS") == 0.5
    shown = ann.get(f"{CHANGES}2/").json()
    assert (shown["who"], shown["approved_by"], len(shown["lines"])) == ("ann", "bob", 2)
    assert post(bob, f"{at}approve/").json()["errors"][0]["rule"] == "decided"
    assert set(Audit.objects.values_list("act", flat=True)) >= {"config.propose", "config.approve"}
    assert post(bob, f"{CHANGES}2/revert/", reason="back").status_code == 422


def test_what_was_changed_meanwhile_or_is_over_or_declined_is_not_approved() -> None:
    ann, bob = caller("ann"), caller("bob")

    def proposed(**more: Any) -> str:
        return f"{PROPOSALS}{post(ann, PROPOSALS, lines=LINES, reason='x', **more).json()['id']}/"

    stale, withdrawn, refused, late = (proposed() for _ in range(4))
    assert post(ann, f"{withdrawn}decline/", reason="no").json()["outcome"] == "withdrawn"
    assert post(bob, f"{refused}decline/", reason="too much").json()["decided_why"] == "too much"
    assert post(bob, f"{refused}decline/", reason="again").status_code == 422
    post(ann, CHANGES, lines=LINES[1:], reason="the other key")
    answer = post(bob, f"{stale}approve/")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (409, "lines[1]")
    later = clock.now() + timedelta(days=8)
    assert end_proposals(later) == 2
    assert bob.get(late).json()["outcome"] == "expired"
    assert post(bob, f"{late}approve/").json()["errors"][0]["rule"] == "decided"
    assert post(ann, PROPOSALS, lines=LINES[1:], reason="x").status_code == 422  # it holds already
    assert post(ann, PROPOSALS, lines=[{"key": "feeds.FEED_MAX_LOSS", "value": "7"}], reason="x").status_code == 422
    assert bob.get(f"{PROPOSALS}999999/").status_code == 404
    assert ChangeSet.objects.count() == 1


def test_pages_propose_show_and_approve_and_other_ways_say_where(tmp_path: Path) -> None:
    ann, bob = page("ann"), page("bob")
    sent = {"key": "shares.SHARE_MODEL", "vo": "", "value": "work_queue", "until": "", "act": "set", "why": "try it"}
    assert "Propose 1 line" in ann.get("/config/draft/", {"key": "shares.SHARE_MODEL", "value": "work_queue"}).content.decode()
    answer: Any = ann.post("/config/apply/", sent)
    proposal = Proposal.objects.get()
    assert answer.url == f"/changes/proposals/{proposal.id}/"
    assert f"Proposal {proposal.id}</a> by ann" in bob.get("/changes/").content.decode()
    mine = ann.get(answer.url).content.decode()
    assert "Withdraw it" in mine
    assert "Approve and apply" not in mine
    assert "global \N{RIGHTWARDS ARROW}" not in mine
    assert "none \N{RIGHTWARDS ARROW} work_queue" in mine
    ann.post(f"{answer.url}approve/")
    assert not ChangeSet.objects.exists()
    assert "Approve and apply" in bob.get(answer.url).content.decode()
    approved: Any = bob.post(f"{answer.url}approve/")
    assert approved.url == "/changes/1/"
    assert "approved by bob" in bob.get("/changes/").content.decode()
    typed = {"value": "0.3", "vo": "", "end_0": "", "end_1": "", "why": "x", "seen": "0"}
    assert "takes two people" in bob.post(f"{ADD}?component=feeds&name=FEED_MAX_LOSS", typed).content.decode()
    override = Override.objects.get()
    removal = bob.post(f"/admin/gdpconfig/override/{override.pk}/remove/", {"why": "x"})
    assert "takes two people" in removal.content.decode()
    document = tmp_path / "config.json"
    document.write_text('{"overrides": [{"key": "storage.LOST_CONFIRM", "value": "1h"}]}')
    with pytest.raises(CommandError, match="takes two people"):
        call_command("config", "import", str(document), "--reason", "x", stdout=io.StringIO())
    assert ChangeSet.objects.count() == 1


def test_it_is_on_in_production_and_off_elsewhere_unless_said() -> None:
    said = {"GRIDBROKER_PROFILE": "local"}
    assert Env.read(said).two_person is False
    assert Env.read({**said, "TWO_PERSON": "1"}).two_person is True
    production = {
        "GRIDBROKER_PROFILE": "production", "DATABASE_URL": "postgresql://b@db/b", "REDIS_URL": "rediss://r/0",
        "ALLOWED_HOSTS": "b.example", "TLS_PROXY_HEADER": "X-Forwarded-Proto: https",
        "SECRET_KEY": "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz",
    }  # fmt: skip
    assert Env.read(production).two_person is True
    assert Env.read({**production, "TWO_PERSON": "0"}).two_person is False
