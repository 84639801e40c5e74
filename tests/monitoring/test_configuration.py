"""The configuration on pages: found, tried, applied with a reason, taken back; without JavaScript, since each step is a form."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.changesets import Draft, Line
from broker_site.foundation.gdpconfig.models import ChangeSet, Override
from broker_site.foundation.gdpconfig.store import apply
from broker_site.foundation.kernel import clock
from monitoring.queries.database import alias
from tests.monitoring.answers import MOST_STATEMENTS, shown, text

CAP = "jobbroker.NQUEUED_SAT_CAP"
APPLY = "/config/apply/"

pytestmark = pytest.mark.django_db


def client(name: str = "ada", *, superuser: bool = False) -> Client:
    made = Client()
    user = ensure_user(name, superuser=superuser, roles=[("demo", "auditor")])
    user.set_password("correct horse")
    user.save()
    made.force_login(user)
    return made


@pytest.fixture
def root(db: None) -> Client:
    return client("root", superuser=True)


def stale_password(browser: Client) -> None:
    session = browser.session
    session["password"] = 0
    session.save()


def lines(*rows: tuple[str, str, str | None], **more: Any) -> dict[str, Any]:
    """A form's lines: key, VO, value; None as value removes."""
    return {
        "key": [row[0] for row in rows],
        "vo": [row[1] for row in rows],
        "value": [row[2] or "" for row in rows],
        "until": ["" for _ in rows],
        "act": ["set" if row[2] is not None else "remove" for row in rows],
        **more,
    }


def draft(browser: Client, sent: dict[str, Any]) -> Any:
    return browser.get(f"/config/draft/?{urlencode(sent, doseq=True)}")


def words(answer: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text(answer))).split())


def test_every_key_is_there_with_what_holds_and_who_set_it(root: Client) -> None:
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="slow links", until=clock.now() + timedelta(days=1))
    reader = client()
    page = words(reader.get("/config/?q=nqueued_sat"))
    assert "NQUEUED_SAT_CAP 150 files 300 files all VOs: 150 bob" in page
    assert "New draft" not in page
    only = reader.get("/config/?overridden=yes")
    assert "NQUEUED_SAT_CAP" in text(only)
    assert "PERIOD_" not in text(only)
    rows = reader.get("/config.json?overridden=yes").json()
    assert rows["revision"] == 1
    assert [(row["key"], row["override"], row["effective"], row["who"]) for row in rows["rows"]] == [(CAP, "150", "150", "bob")]
    table = list(csv.DictReader(io.StringIO(text(reader.get("/config.csv")))))
    listed = reader.get("/config.json").json()["rows"]
    assert [row["key"] for row in table] == [row["key"] for row in listed]
    assert len(listed) > 300


def test_bad_filters_are_told_and_data_refuses_them(root: Client) -> None:
    assert root.get("/config/?overridden=perhaps").status_code == 400
    assert root.get("/config.csv?overridden=perhaps").status_code == 400
    assert "is not known" in words(root.get("/config/?wrods=x"))
    assert "No key has all of these words" in words(root.get("/config/?q=%3Cscript%3Ealert(1)%3C/script%3E"))
    assert "<script>alert" not in text(root.get("/config/?q=%3Cscript%3Ealert(1)%3C/script%3E"))


@pytest.mark.parametrize("key", [CAP, "prod_job_throttler.NQUEUELIMIT_<queue>", "prod_job_throttler.NQUEUELIMIT_MC 16/x"])
def test_the_page_of_a_key_says_what_it_means_and_what_became_of_it(root: Client, key: str) -> None:
    name = key.partition(".")[2].replace("<queue>", "MC 16")
    set_override(key.partition(".")[0], name, 150, who="bob", why="slow links")
    page = words(root.get(f"/config/{key}/"))
    assert "none → 150" in page
    assert "slow links" in page
    assert "Try it" in page
    assert "Try it" not in words(client().get(f"/config/{key}/"))


def test_a_key_that_nobody_knows_is_not_there(root: Client) -> None:
    for key in ("jobbroker.NQUEUED_SAT_CPA", "x", "a/b/c", "%E2%80%AE.x"):
        assert root.get(f"/config/{key}/").status_code == 404


def test_from_a_draft_to_its_change_and_back(root: Client) -> None:
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="slow links")
    sent = lines((CAP, "", "200"), (CAP, "atlas", "20"), base="1")
    seen = draft(root, sent)
    page = words(seen)
    assert "all VOs 150 files 200 files it stays 150 files 200 files" in page
    assert "atlas none 20 files it stays 150 files 20 files" in page
    assert "No kept decision could be taken again" in page
    assert ChangeSet.objects.count() == 1
    hidden = dict(re.findall(r'type="hidden" name="(base)" value="([^"]*)"', text(seen)))
    assert hidden == {"base": "1"}
    answer = root.post(APPLY, sent | {"why": "links are better", "ticket": "GGUS-1"})
    assert answer.headers["Location"] == "/changes/2/"
    page = words(root.get("/changes/2/"))
    assert "Applied as revision 2" in page
    assert "links are better" in page
    assert gdpconfig.value("jobbroker", "NQUEUED_SAT_CAP", vo="atlas") == 20
    made = ChangeSet.objects.get(pk=2)
    assert (made.who, made.source, made.ticket) == ("root", "page", "GGUS-1")
    assert Audit.objects.get(act="config.change").reason == "links are better"
    assert root.post("/changes/2/revert/", {"why": "not better"}).headers["Location"] == "/changes/3/"
    assert "Takes back 2" in words(root.get("/changes/3/"))
    assert "Taken back by 3" in words(root.get("/changes/2/"))
    assert gdpconfig.value("jobbroker", "NQUEUED_SAT_CAP", vo="atlas") == 150


def test_removing_is_a_line_too(root: Client) -> None:
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="slow links")
    sent = lines((CAP, "", None))
    assert "all VOs 150 files none \N{EN DASH} 150 files 300 files" in words(draft(root, sent))
    assert root.post(APPLY, sent | {"why": "over"}).status_code == 302
    assert not Override.objects.exists()


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (lines(("jobbroker.NQUEUED_SAT_CPA", "", "5")), "did you mean NQUEUED_SAT_CAP"),
        (lines((CAP, "", "many")), "Line 1, value : NQUEUED_SAT_CAP: 'many' is not a whole number"),
        (lines((CAP, "", "5"), ("jobbroker.NQUEUED_SAT", "", "5")), "Line 2, key : unknown configuration key"),
        (lines((CAP, "", "-1")), "out of range"),
        (lines((CAP, "no vo", "5")), "is no name of a VO"),
        (lines((CAP, "", "5")) | {"until": ["soon"]}, "a time as 2026-12-24 18:00"),
        (lines((CAP, "", "5")) | {"until": ["2001-01-01"]}, "a time to come"),
        (lines((CAP, "", "5"), base="x"), "the number of a revision"),
        (lines((CAP, "", "5"), base="99"), "there is no revision 99"),
        (lines((CAP, "", "5"), (CAP, "", "6")), "stands in 2 lines"),
        ({"key": ["x"] * 101}, "there are more lines than the 100 of a form"),
    ],
)
def test_a_bad_draft_is_told_where_it_is_bad_and_cannot_be_applied(root: Client, sent: dict[str, Any], told: str) -> None:
    seen = draft(root, sent)
    assert seen.status_code == 400
    assert told in words(seen)
    assert "Apply" not in words(seen)
    answer = root.post(APPLY, sent | {"why": "x"}, follow=True)
    assert "Nothing was changed" in words(answer)
    assert not ChangeSet.objects.exists()


def test_hostile_texts_stay_texts(root: Client) -> None:
    evil = "<script>alert(1)</script>"
    sent = lines(("core.POLICY_analysis", "", evil), (evil, evil, evil))
    assert evil not in text(draft(root, sent))
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who=evil, why=evil)
    for address in ("/config/", f"/config/{CAP}/", "/changes/", "/changes/1/"):
        assert evil not in text(root.get(address))


def test_who_was_slower_is_told_and_may_look_again(root: Client) -> None:
    sent = lines((CAP, "", "200"), base="0")
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="slow links")
    page = words(draft(root, sent))
    assert "bob has set it to '150'" in page
    assert "Look at it as it is now" in page
    assert "bob has set it to '150'" in words(root.post(APPLY, sent | {"why": "x"}, follow=True))
    assert Override.objects.get().value == "150"


def test_a_reason_is_needed(root: Client) -> None:
    answer = root.post(APPLY, lines((CAP, "", "200")) | {"why": " "}, follow=True)
    assert "a change needs its reason" in words(answer)
    assert not ChangeSet.objects.exists()


def test_the_password_is_asked_again_after_a_while(root: Client) -> None:
    stale_password(root)
    sent = lines((CAP, "", "200"))
    assert "Your password again" in words(draft(root, sent))
    assert "Give your password too" in words(root.post(APPLY, sent | {"why": "x"}, follow=True))
    wrong = root.post(APPLY, sent | {"why": "x", "password_again": "wrong"}, follow=True)
    assert "That is not your password" in words(wrong)
    assert not ChangeSet.objects.exists()
    assert root.post(APPLY, sent | {"why": "x", "password_again": "correct horse"}).headers["Location"] == "/changes/1/"


def test_who_may_only_read_applies_and_takes_back_nothing(root: Client) -> None:
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="slow links")
    reader = client()
    assert "Reason" not in words(draft(reader, lines((CAP, "", "200"))))
    assert reader.post(APPLY, lines((CAP, "", "200")) | {"why": "x"}).status_code == 403
    assert reader.post("/changes/1/revert/", {"why": "x"}).status_code == 403
    assert "Take it back" not in words(reader.get("/changes/1/"))
    assert ChangeSet.objects.count() == 1


def test_the_list_of_changes_has_the_same_rows_as_its_data_and_filters(root: Client) -> None:
    for value in (1, 2, 3):
        set_override("jobbroker", "NQUEUED_SAT_CAP", value, who="bob", why="x")
    apply(Draft([Line("prod_job_throttler", f"NQUEUELIMIT_Q{i}", 5) for i in range(9)], "cid", "=1+1", "import"))
    assert shown(root.get("/changes/"), "changes") == [4, 3, 2, 1]
    assert "9 lines in all" in words(root.get("/changes/"))
    assert [row["id"] for row in root.get("/changes.json").json()["rows"]] == [4, 3, 2, 1]
    table = list(csv.DictReader(io.StringIO(text(root.get("/changes.csv")))))
    assert (table[0]["id"], table[0]["why"]) == ("4", "'=1+1")
    assert shown(root.get("/changes/?name=NQUEUED_*"), "changes") == [3, 2, 1]
    assert shown(root.get("/changes/?who=cid"), "changes") == [4]
    assert shown(root.get("/changes/?source=import"), "changes") == [4]
    assert shown(root.get("/changes/?limit=2"), "changes") == [4, 3]
    assert root.get("/changes.json?source=carrier").status_code == 400
    assert root.get("/changes/4.json").json()["lines"][0]["key"] == "prod_job_throttler.NQUEUELIMIT_Q0"
    assert root.get("/changes/5/").status_code == 404
    assert root.get(f"/changes/{1 << 70}/").status_code == 404


@pytest.mark.parametrize("address", ["/config/", f"/config/{CAP}/", "/changes/", "/changes/30/", "/config.csv", "/changes.csv"])
def test_statements_do_not_grow_with_rows(root: Client, address: str) -> None:
    for value in range(1, 41):
        set_override("jobbroker", "NQUEUED_SAT_CAP", value, who="bob", why="x")
    apply(Draft([Line("prod_job_throttler", f"NQUEUELIMIT_Q{i}", 5) for i in range(200)], "cid", "many", "import"))
    with CaptureQueriesContext(connections[alias()]) as pages, CaptureQueriesContext(connections["default"]) as others:
        text(root.get(address))
    assert len(pages) + len(others) <= MOST_STATEMENTS
