"""Shares and work queues by change sets: made, refused where they cannot be or where somebody was faster, ended, taken back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.gdpconfig.models import ChangeSet
from broker_site.foundation.gdpconfig.store import end_expired
from broker_site.foundation.kernel import clock
from workqueues.models import GlobalShare, WorkQueue

CHANGES = "/api/v1/config/changes/"

pytestmark = pytest.mark.django_db


def caller(name: str, role: str = "", *, superuser: bool = False) -> Client:
    user = ensure_user(name, superuser=superuser, roles=[("demo", role)] if role else [])
    return Client(HTTP_AUTHORIZATION=f"Bearer {issue_user_token(user).text}")


@pytest.fixture
def editor(db: None) -> Client:
    return caller("eve", "share-editor")


def share(name: str, value: float | None, parent: str = "", vo: str = "demo", **more: Any) -> dict[str, Any]:
    """A line; value None removes."""
    columns = None if value is None else {"value": value, "parent": parent, **more}
    return {"kind": "share", "key": name, "vo": vo, "value": columns}


def queue(name: str, order: int, vo: str = "demo", **columns: Any) -> dict[str, Any]:
    return {"kind": "work_queue", "key": name, "vo": vo, "value": {"queue_order": order, **columns}}


def post(browser: Client, *lines: dict[str, Any], **more: Any) -> Any:
    return browser.post(CHANGES, {"lines": lines, "reason": "test", **more}, "application/json")


def faults(answer: Any) -> dict[str, str]:
    return {each["field"]: each["message"] for each in answer.json()["errors"]}


def test_a_tree_is_made_at_once_listed_changed_and_taken_back(editor: Client) -> None:
    made = post(editor, share("MC", 60, "Top", campaign="mc.*"), share("Top", 80), share("Data", 40, "Top"), share("User", 20))
    assert made.status_code == 201, made.json()
    listed = editor.get("/api/v1/shares/").json()
    assert listed["revision"] == 1
    assert [(row["name"], row["parent"], row["value"], row["revision"], row["who"]) for row in listed["results"]] == [
        ("Data", "Top", 40, 1, "eve"), ("MC", "Top", 60, 1, "eve"), ("Top", "", 80, 1, "eve"), ("User", "", 20, 1, "eve"),
    ]  # fmt: skip
    # A parent goes and its share moves up in one set.
    changed = post(editor, share("Top", None), share("MC", 60, campaign="mc.*"), share("Data", None), base=1)
    assert changed.status_code == 201, changed.json()
    assert [line["words"] for line in changed.json()["lines"]][:2] == ["removed", "parent Top \N{RIGHTWARDS ARROW} empty"]
    assert set(GlobalShare.objects.values_list("name", "parent")) == {("MC", None), ("User", None)}
    back = editor.post(f"{CHANGES}2/revert/", {"reason": "no"}, "application/json")
    assert back.status_code == 201, back.json()
    assert dict(GlobalShare.objects.values_list("name", "parent")) == {"MC": "Top", "Data": "Top", "Top": None, "User": None}


def test_what_cannot_stand_is_refused_at_its_line_and_column_and_changes_nothing(editor: Client) -> None:
    post(editor, share("Top", 80), share("MC", 60, "Top"), share("User", 20))
    GlobalShare.objects.create(name="Other", vo="atlas", value=1)
    answer = post(
        editor, share("Top", 80, "MC"), share("A", -1), share("B", 1, "Tpo"), share("C", 1, campaign="("), share("Other", 1),
        share("MC", None), share("MC2", 0, "User"),
    )  # fmt: skip
    told = faults(answer)
    assert answer.status_code == 422
    assert told["lines[1].value"] == "A: a share of -1 is negative"
    assert told["lines[2].parent"] == "there is no share Tpo; did you mean Top?"
    assert told["lines[3].campaign"].startswith("no regular expression")
    assert told["lines[4].key"].startswith("the name Other is taken")
    assert told["lines[6].value"].startswith("User: all its shares are zero")
    assert faults(post(editor, share("D", 1, "Other")))["lines[0].parent"] == "Other is a share of atlas"
    assert faults(post(editor, share("Top", 1, "MC")))["lines[0].parent"] == "a share cannot be below itself"
    assert "shares below it: MC" in faults(post(editor, share("Top", None)))["lines[0]"]
    assert faults(post(editor, share("X", 1, valeu=2)))["lines[0].valeu"] == "'valeu' is no column; did you mean value?"
    assert faults(post(editor, share("X", float("1e400")) | {"value": {"value": "many"}}))["lines[0].value"]
    assert faults(post(editor, share("", 1)))["lines[0].key"]
    assert ChangeSet.objects.count() == 1


def test_who_looked_at_an_older_revision_is_told_what_changed(editor: Client) -> None:
    post(editor, share("Top", 80), share("User", 20))
    post(editor, share("Top", 70))
    late = post(editor, share("Top", 60), base=1)
    assert late.status_code == 409
    assert "by eve: value 80 \N{RIGHTWARDS ARROW} 70" in faults(late)["lines[0]"]
    assert post(editor, share("User", 30), base=1).status_code == 201


def test_each_line_asks_for_its_own_right(editor: Client) -> None:
    for line in (share("Top", 1, vo="atlas"), queue("q", 1, vo="*"), {"key": "jobbroker.NQUEUED_SAT_CAP", "value": 7}):
        refused = post(editor, line)
        assert refused.status_code == 403
        assert "asks for the right" in refused.json()["detail"]
    assert post(caller("bob", "operator"), share("Top", 1)).status_code == 403
    assert not ChangeSet.objects.exists()
    assert post(caller("root", superuser=True), queue("q", 1, vo="*"), share("Top", 1, vo="atlas")).status_code == 201


def test_work_queues_change_places_move_into_partitions_and_stay_while_they_have_tasks(editor: Client) -> None:
    # It comes with a new database, but tests with transactions of their own leave none.
    WorkQueue.objects.get_or_create(queue_name="default", vo="*", defaults={"queue_type": "", "queue_order": 1000})
    made = post(
        editor, queue("a", 1), queue("b", 2, criteria="processingType = 'x'"), queue("part", 3, is_partition=True),
        queue("sub/managed", 4, partition="part (demo)", queue_share=5),
    )  # fmt: skip
    assert made.status_code == 201, made.json()
    assert post(editor, queue("a", 2), queue("b", 1, criteria="processingType = 'x'")).status_code == 201
    assert dict(WorkQueue.objects.filter(vo="demo").values_list("queue_name", "queue_order"))["a"] == 2
    sub = WorkQueue.objects.get(queue_name="sub")
    assert (sub.queue_type, sub.partition and sub.partition.queue_name, sub.queue_share) == ("managed", "part", 5)
    refused = post(
        editor, queue("a", 1), queue("n", 9, partition="nope"), queue("m", 10, criteria="procesingType = 1"),
        queue("s", 11, status="off"),
    )  # fmt: skip
    told = faults(refused)
    assert told["lines[0].queue_order"] == "b (demo) has the order 1 already"
    assert told["lines[1].partition"] == "nope is no partition"
    assert "the nearest known one is processingType" in told["lines[2].criteria"]
    assert told["lines[3].status"].startswith("active or inactive")
    names = [row["name"] for row in editor.get("/api/v1/work-queues/").json()["results"]]
    assert names == ["b", "a", "part", "sub/managed", "default"]


def test_a_temporary_value_ends_by_itself_and_gives_way_to_what_was_before(editor: Client) -> None:
    post(editor, share("Top", 80), share("User", 20))
    until = clock.now() + timedelta(hours=1)
    line = share("Top", 10) | {"until": until.isoformat()}
    assert post(editor, line).status_code == 201
    assert faults(post(editor, share("New", 1) | {"until": until.isoformat()}))["lines[0].until"]
    assert GlobalShare.objects.get(name="Top").value == 10
    assert end_expired(until - timedelta(seconds=1)) == 0
    assert end_expired(until) == 1
    assert GlobalShare.objects.get(name="Top").value == 80
    assert end_expired(until) == 0
    # What could not stand any more does not come back: no share would have any weight.
    post(editor, share("Top", 0))
    post(editor, share("Top", 5) | {"until": until.isoformat()})
    post(editor, share("User", 0))
    assert end_expired(until) == 1
    assert dict(GlobalShare.objects.values_list("name", "value")) == {"Top": 5, "User": 0}
    assert ChangeSet.objects.all()[0].source == "expiry"
    assert end_expired(until) == 0
