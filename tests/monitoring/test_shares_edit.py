"""The share tree edited as a tree: sums by the server, faults beside fields, what it would have meant, applied, taken back."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.gdpconfig.changesets import Draft, named_line
from broker_site.foundation.gdpconfig.models import ChangeSet
from broker_site.foundation.gdpconfig.store import apply
from broker_site.foundation.kernel import clock
from brokerage.models import TallyBucket, TallyGroup, TallyLevel, TallyMark
from brokerage.rules.facts.series import Asked
from monitoring.queries.share_editor import FIELDS, stored_rows
from tests.builders import parameters, submitted
from tests.monitoring.answers import counted, text
from workqueues.models import GlobalShare, ThrottleVerdict

EDIT = "/shares/edit/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def tree(db: None) -> None:
    lines: list[tuple[str, int, dict[str, Any]]] = [("Top", 80, {}), ("Data", 40, {"parent": "Top", "processing_type": "reco"}),
             ("MC", 60, {"parent": "Top", "position": 1}), ("User", 20, {"position": 2, "throttled": False})]  # fmt: skip
    apply(Draft([named_line("share", n, "demo", {"value": v, **m}) for n, v, m in lines], "ann", "x", "rest"))


def browser(name: str, role: str) -> Client:
    made = Client()
    user = ensure_user(name, roles=[("demo", role)])
    user.set_password("correct horse")
    user.save()
    made.force_login(user)
    return made


def form(**changes: dict[str, str]) -> dict[str, Any]:
    """The form as the page sends it, with some fields of some shares changed; `new` is the first empty row."""
    rows = stored_rows("demo")
    sent: dict[str, Any] = {name: [] for name in FIELDS}
    for row in rows:
        typed = {"name": row.name, "was": row.was, "act": "", **row.typed, **changes.get(row.name or "new", {})}
        if not row.name:
            changes.pop("new", None)
        for name in FIELDS:
            sent[name].append(typed[name])
    return {**sent, "vo": "demo", "base": "1"}


def words(answer: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text(answer))).split())


def hidden(answer: Any) -> dict[str, Any]:
    """What the form that applies would send."""
    page = text(answer)
    part = page[page.index('id="apply"') :]
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', part):
        found.setdefault(name, []).append(unescape(value))
    return {name: values for name, values in found.items() if name != "csrfmiddlewaretoken"}


def test_from_the_tree_to_a_change_and_back(tree: None) -> None:
    eve = browser("eve", "share-editor")
    with CaptureQueriesContext(connection) as seen:
        page = words(eve.get(EDIT))
    assert counted(seen) <= 12
    assert "Shares of demo" in page
    assert "40.0 % 32.0 %" in page  # Data: 40 of 100 below 80 of 100
    assert "Below Top : 100 ; At the top" not in page
    changed = form(MC={"value": "140"}, new={"name": "Group", "value": "20", "parent": ""}, Data={"act": "remove"})
    seen_page = eve.post(EDIT, changed)
    told = words(seen_page)
    assert "At the top: 120 not 100" in told
    assert "100.0 % 66.7 %" in told  # MC alone below 80 of 120
    assert "no job ran or waited in the last hour" in told.lower()
    assert "Apply 3 lines" in told
    assert ChangeSet.objects.count() == 1
    eve.post("/config/apply/", hidden(seen_page) | {"why": "a group came"})
    made = ChangeSet.objects.all()[0]
    assert (made.who, made.why, made.source, made.lines.count()) == ("eve", "a group came", "page", 3)
    assert dict(GlobalShare.objects.values_list("name", "value")) == {"Top": 80, "MC": 140, "User": 20, "Group": 20}
    eve.post("/changes/2/revert/", {"why": "no group"})
    assert dict(GlobalShare.objects.values_list("name", "value")) == {"Top": 80, "Data": 40, "MC": 60, "User": 20}


def test_faults_stand_beside_their_fields_and_a_tree_that_changed_meanwhile_is_told(tree: None) -> None:
    eve = browser("eve", "share-editor")
    answer = eve.post(EDIT, form(MC={"value": "many", "campaign": "("}, Top={"parent": "Data"}, User={"act": "remove"}))
    page = text(answer)
    assert answer.status_code == 400
    assert "Value : 'many' is no number" in unescape(words(answer))
    assert "was ignored" not in words(eve.post(f"{EDIT}?vo=demo", form(MC={"value": "many"})))
    assert re.search(r'value="many"[^>]*aria-invalid="true"', page)
    assert "Apply" not in words(answer)
    assert "cannot be below itself" in words(eve.post(EDIT, form(Top={"parent": "Data"})))
    late = form(MC={"value": "70"})
    apply(Draft([named_line("share", "MC", "demo", {"parent": "Top", "value": 65, "position": 1})], "ann", "x", "rest"))
    answer = eve.post(EDIT, late)
    assert "by ann: value 60 \N{RIGHTWARDS ARROW} 65" in words(answer)
    assert "look at it as it is now" in words(answer)
    # Whoever else was at other shares does not matter.
    untouched = form(User={"value": "30"}) | {"base": "1"}
    assert "Apply 1 line" in words(eve.post(EDIT, untouched))
    assert eve.post(EDIT, {"vo": "demo", "name": ["x"]}).status_code == 400


def test_who_may_not_edit_may_try(tree: None) -> None:
    reader = browser("bob", "auditor")
    told = words(reader.post(EDIT, form(MC={"value": "70"})))
    assert "You may try changes, but not apply them" in told
    assert reader.post(EDIT, form(MC={"value": "70"}), HTTP_HX_REQUEST="true").status_code == 200
    assert reader.get(f"{EDIT}?vo=cms").status_code == 404
    assert reader.post(EDIT, form() | {"vo": "cms"}).status_code == 404


def test_the_dry_run_rests_on_the_work_verdicts_and_tasks_of_late(tree: None) -> None:
    now = clock.now()
    TallyMark.objects.update_or_create(id=1, defaults={"seen": "1:1:", "counted_at": now})
    family = Asked(("running",), by="share").family.value
    for share, running, queued in (("Data", 10, 0), ("MC", 5, 50), ("User", 5, 50)):
        group = TallyGroup.objects.create(family=family, vo="demo", share=share)
        for what, n in (("running", running), ("activated", queued)):
            TallyLevel.objects.create(group=group, what=what, n=n)
            TallyBucket.objects.create(group=group, step_s=300, what=what, at=now - timedelta(minutes=30), n=0)
    common: dict[str, Any] = {"vo": "demo", "prod_source_label": "user", "lock": False, "ratio": 2, "waiting": 0}
    jobs = {"running": 1, "defined": 0, "assigned": 0, "activated": 50, "starting": 0}
    ThrottleVerdict.objects.create(**common, **jobs, unit="User", decision="PASS", rule="unthrottled", reason="x")
    ThrottleVerdict.objects.create(**common, **jobs, unit="MC", decision="SKIP", rule="ratio", reason="x")
    for name in ("a", "b"):
        submitted(parameters(name, processingType="reco"))
    token = issue_user_token(ensure_user("eve", roles=[("demo", "share-editor")])).text
    lines = [
        {"kind": "share", "key": "MC", "vo": "demo", "value": {"parent": "Top", "value": 1, "position": -1, "throttled": False}},
        {"kind": "share", "key": "User", "vo": "demo", "value": {"value": 2000, "position": 2}},
    ]
    body = {"lines": lines, "reason": "try", "dry_run": True}
    answer = Client(HTTP_AUTHORIZATION=f"Bearer {token}").post("/api/v1/config/changes/", body, "application/json")
    trial = answer.json()["steering"]
    assert answer.status_code == 200
    assert trial["moments"] == 12
    assert trial["reordered"] == 12
    user = next(row for row in trial["shares"] if row["share"] == "User")
    assert user["entitled"][0] == pytest.approx(4, abs=1)
    assert user["entitled"][1] > 18
    assert {(one["what"], one["before"], one["after"]) for one in trial["verdicts_changed"]} == {
        ("User", "PASS (unthrottled)", "SKIP (ratio)"), ("MC", "SKIP (ratio)", "PASS (unthrottled)"),
    }  # fmt: skip
    assert trial["tasks_changed"] == [{"what": "share", "before": "Data", "after": "MC", "n": 2}]
    assert trial["sentence"].endswith("2 of 2 verdicts of the throttler in the last hour would be others; "
                                      "2 of 2 tasks of the last day would belong elsewhere.")  # fmt: skip
    assert ChangeSet.objects.count() == 1


def test_a_tree_of_many_shares_is_edited_at_once(tree: None) -> None:
    made: dict[str, Any] = {"vo": "demo", "base": "1", **{name: [] for name in FIELDS}}
    usual = {"was": "", "parent": "", "value": "1", "position": "0", "throttled": "true", "act": ""}
    for n in range(200):
        for name in FIELDS:
            made[name].append({**usual, "name": f"S{n}"}.get(name, ""))
    answer = browser("eve", "share-editor").post(EDIT, made)
    assert answer.status_code == 200
    assert "S199" in text(answer)


def test_no_share_has_the_name_of_another_page(tree: None) -> None:
    eve = browser("eve", "share-editor")
    for name in ("edit", "..", "."):
        answer = eve.post(EDIT, form(new={"name": name, "value": "1"}))
        assert answer.status_code == 400
        assert f"a share named {name} would have no page" in text(answer)
