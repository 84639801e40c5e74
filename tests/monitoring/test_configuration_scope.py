"""What is steered for VOs that somebody may not look into is nowhere told: one rule for pages and REST."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.gdpconfig.changesets import Draft, Line, named_line
from broker_site.foundation.gdpconfig.models import Change, Proposal
from broker_site.foundation.gdpconfig.proposals import propose
from broker_site.foundation.gdpconfig.store import apply
from broker_site.foundation.gdpconfig.visible_lines import seen_lines, sees
from broker_site.foundation.kernel import clock
from brokerage.models import Site
from tests.monitoring.answers import text

pytestmark = pytest.mark.django_db
HIDDEN = ("Secret", "Veiled", "7717717", "-31415")
"""Names and values of rows of cms: none is part of a time."""


def share(name: str, vo: str, value: float | None) -> Line:
    return named_line("share", name, vo, None if value is None else {"value": value})


@pytest.fixture
def reader(db: None) -> Client:
    """Who may read the configuration of demo; three sets and a proposal are there."""
    Site.objects.create(name="S1")
    mixed = [
        share("Top", "demo", 80),
        share("Secret", "cms", 7717717),
        named_line("config", "jobbroker.NQUEUED_SAT_CAP", "cms", "150"),
    ]
    for lines in (
        mixed,
        [named_line("work_queue", "cms_only", "cms", {"queue_order": -31415})],
        [named_line("work_queue", "for_all", "", {"queue_order": 3}), named_line("site", "S1", "", {"cpu_slots": 4})],
    ):
        apply(Draft(lines, "ann", "as agreed", "rest"))
    propose(Draft([share("Top", "demo", 81), share("Veiled", "cms", 5)], "ann", "more", "rest"))
    user = ensure_user("ada", roles=[("demo", "auditor"), ("demo", "share-editor")])
    return Client(headers={"Authorization": f"Bearer {issue_user_token(user).text}"})


@pytest.fixture
def browser(reader: Client) -> Client:
    made = Client()
    made.force_login(ensure_user("ada"))
    return made


def no_secret(answer: Any, status: int = 200) -> str:
    said = text(answer)
    assert answer.status_code == status, said[:500]
    assert [word for word in (*HIDDEN, "cms_only") if word in said] == []
    return said


def test_lists_and_single_sets_tell_the_lines_that_are_seen_and_how_many_are_not(reader: Client, browser: Client) -> None:
    rows = json.loads(no_secret(browser.get("/changes.json")))["rows"]
    assert [(row["id"], row["n_lines"], row["n_hidden"]) for row in rows] == [(3, 2, 0), (1, 2, 1)]
    no_secret(browser.get("/changes.csv"))
    assert "and 1 line for VOs that you may not look into" in no_secret(browser.get("/changes/"))
    listed = json.loads(no_secret(reader.get("/api/v1/config/changes/")))["results"]
    assert [(row["revision"], row["n_lines"], row["n_hidden"]) for row in listed] == [(3, 2, 0), (1, 2, 1)]
    assert "And 1 line for VOs" in no_secret(browser.get("/changes/1/"))
    for whole in (browser.get("/changes/1.json"), reader.get("/api/v1/config/changes/1/")):
        told = json.loads(no_secret(whole))
        assert ([line["key"] for line in told["lines"]], told["n_hidden"]) == (["share Top", "jobbroker.NQUEUED_SAT_CAP"], 1)
    for address in ("/changes/2/", "/changes/2.json", "/api/v1/config/changes/2/"):
        assert (browser if address.startswith("/changes") else reader).get(address).status_code == 404


def test_no_filter_finds_a_set_by_a_line_that_is_not_seen(reader: Client, browser: Client) -> None:
    for name, found in (("Top", [1]), ("Secret", []), ("Sec*", []), ("!Secret", [3, 1])):
        listed = reader.get("/api/v1/config/changes/", {"name": name}).json()["results"]
        rows = browser.get("/changes.json", {"name": name}).json()["rows"]
        assert [row["revision"] for row in listed] == [row["id"] for row in rows] == found
    root = Client()
    root.force_login(ensure_user("root", superuser=True))
    assert [row["id"] for row in root.get("/changes.json?name=Secret").json()["rows"]] == [1]


def test_a_proposal_tells_the_lines_that_are_seen(reader: Client, browser: Client) -> None:
    number = Proposal.objects.get().id
    assert "And 1 line for VOs" in no_secret(browser.get(f"/changes/proposals/{number}/"))
    for answer in (reader.get(f"/api/v1/config/proposals/{number}/"), reader.get("/api/v1/config/proposals/")):
        told = json.loads(no_secret(answer))
        told = told["results"][0] if "results" in told else told
        assert ([line["name"] for line in told["lines"]], told["n_hidden"]) == (["Top"], 1)


def test_a_proposal_of_which_no_line_is_seen_is_not_there(reader: Client, browser: Client) -> None:
    shown = Proposal.objects.get().id
    hidden = propose(Draft([share("Veiled", "cms", 6)], "ann", "for Secret reasons", "rest"))
    assert hidden is not None
    assert [row["id"] for row in json.loads(no_secret(reader.get("/api/v1/config/proposals/")))["results"]] == [shown]
    no_secret(browser.get("/changes/"))
    no_secret(browser.get(f"/changes/proposals/{hidden.id}/"), 404)
    no_secret(reader.get(f"/api/v1/config/proposals/{hidden.id}/"), 404)
    no_secret(reader.post(f"/api/v1/config/proposals/{hidden.id}/approve/"), 404)
    no_secret(reader.post(f"/api/v1/config/proposals/{hidden.id}/decline/", {"reason": "x"}, "application/json"), 404)


def test_who_may_not_see_all_lines_neither_decides_nor_takes_back_and_is_told_none_of_them(
    reader: Client, browser: Client
) -> None:
    number = Proposal.objects.get().id
    body = {"reason": "x"}
    assert 'id="approve"' not in no_secret(browser.get(f"/changes/proposals/{number}/"))
    assert "Take it back" not in no_secret(browser.get("/changes/1/"))
    assert "Take it back" in no_secret(browser.get("/changes/3/"))
    no_secret(reader.post(f"/api/v1/config/proposals/{number}/approve/"), 403)
    no_secret(reader.post(f"/api/v1/config/proposals/{number}/decline/", body, "application/json"), 403)
    soon = datetime.now(UTC) + timedelta(hours=1)
    temporary = replace(share("Secret", "cms", 778), until=soon)
    apply(Draft([temporary, share("Top", "demo", 82)], "ann", "for an hour", "rest"))
    last = apply(Draft([share("Secret", "cms", 779), share("Top", "demo", 83)], "ann", "for good", "rest"))
    assert last is not None
    with clock.frozen(soon + timedelta(hours=1)):
        for dry in (True, False):
            address = f"/api/v1/config/changes/{last.revision}/revert/"
            no_secret(reader.post(address, {**body, "dry_run": dry}, "application/json"), 403)


def test_a_draft_of_what_is_not_seen_is_refused_and_tells_nothing_of_it(reader: Client, browser: Client) -> None:
    sent = {"kind": "share", "key": "Secret", "vo": "cms", "value": '{"value": 1}', "until": "", "act": "set"}
    page = text(browser.get("/config/draft/", sent))
    assert "not among the VOs that you may look into" in page
    assert "7717717" not in page
    lines = [{"kind": "share", "key": "Secret", "vo": "cms", "value": None}]
    for body in ({"lines": lines, "reason": "x", "dry_run": True}, {"lines": lines, "reason": "x"}):
        refused = reader.post("/api/v1/config/changes/", body, "application/json")
        assert (refused.status_code, [each["rule"] for each in refused.json()["errors"]]) == (403, ["right"])
        assert "7717717" not in text(refused)
    back = reader.post("/api/v1/config/changes/1/revert/", {"reason": "x", "dry_run": True}, "application/json")
    no_secret(back, 403)
    typed = {"text": '{"shares": [{"name": "Secret", "vo": "cms", "value": 1}]}'}
    assert "7717717" not in text(browser.post("/config/draft/import/", typed))


def test_what_a_file_does_not_name_is_removed_of_what_is_seen_alone(reader: Client, browser: Client) -> None:
    typed = {"text": '{"shares": [], "work_queues": [{"name": "for_all", "queue_order": 4}]}', "only": "yes"}
    page = no_secret(browser.post("/config/draft/import/", typed))
    assert "Top" in page


def test_an_export_has_the_rows_of_ones_vos_and_those_of_none(reader: Client) -> None:
    told = json.loads(no_secret(reader.get("/api/v1/config/draft/")))
    names = {head: [entry.get("name", entry.get("key")) for entry in entries] for head, entries in told.items()}
    assert names == {
        "overrides": ["jobbroker.NQUEUED_SAT_CAP"], "shares": ["Top"], "work_queues": ["for_all", "default"], "sites": ["S1"],
    }  # fmt: skip


@pytest.mark.parametrize("scope", [VoScope(True), *(VoScope(False, frozenset(vos)) for vos in ((), ("demo",), ("cms", "x")))])
def test_the_rule_is_the_same_for_one_line_and_in_a_statement(reader: Client, scope: VoScope) -> None:
    by_rule = {line.id for line in Change.objects.all() if sees(scope, line.kind, line.vo)}
    assert set(Change.objects.filter(seen_lines(scope)).values_list("id", flat=True)) == by_rule
