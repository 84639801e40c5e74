"""The share tree: edited in the admin under its rules, tasks get their leaf, the page tells where each share stands."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from broker_site.foundation.agency.look import Looks
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.changesets import in_words
from broker_site.foundation.gdpconfig.models import Change, ChangeSet
from broker_site.foundation.gdpconfig.store import revert
from brokerage.models import ComputingQueue
from tests.builders import grid, parameters, submitted
from tests.flow.steps import ROUND, run_agents, take
from workqueues.models import GlobalShare, Task, WorkQueue
from workqueues.queries.place_faults import check_places

LIST = "/admin/workqueues/globalshare/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def tree() -> None:
    """Production 80 (MC 60, Data 40) and Analysis 20 in the VO demo."""
    production = GlobalShare.objects.create(name="Production", vo="demo", value=80)
    GlobalShare.objects.create(
        name="Data", vo="demo", parent=production, value=40, position=1, prod_source_label="managed", processing_type="reco"
    )
    GlobalShare.objects.create(name="MC", vo="demo", parent=production, value=60, position=2, prod_source_label="managed|test")
    GlobalShare.objects.create(name="Analysis", vo="demo", value=20, position=3, prod_source_label="user$", working_group="$")


def posted(root: Client, name: str = "Group", **changes: Any) -> Any:
    """The answer to a new share."""
    form = {
        "name": name,
        "vo": "demo",
        "parent": "Production",
        "value": 10,
        "position": 9,
        "throttled": "on",
        "why": "x",
    } | changes
    return root.post(f"{LIST}add/", {key: value for key, value in form.items() if value is not None})


def test_a_share_is_added_audited_and_what_does_not_sum_to_100_is_told(root: Client, tree: None) -> None:
    answer = posted(root)
    page = root.get(answer.url).content.decode()
    assert "Shares below Production sum to 110, not to 100: each is a part of 110." in page
    assert Audit.objects.filter(act="globalshare.add", after__name="Group").count() == 1
    assert "54.5 %" in page  # MC: 60 of 110
    told = root.get(f"{LIST}Group/history/", follow=True).content.decode()
    assert "Group" in told.split('id="result_list"')[1]
    assert "new: " in told, "in words, not as the document of its columns"
    assert "have a change history" not in told


def test_a_share_that_changed_is_told_to_the_agent_that_counts_what_each_has(
    root: Client, tree: None, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as hooks:
        posted(root)
    assert [list(hook.agents) for hook in hooks if isinstance(hook, Looks)] == [["share"]]


def test_the_list_is_a_tree_with_the_part_of_all_that_each_share_has(root: Client, tree: None) -> None:
    page = root.get(LIST).content.decode()
    rows = re.findall(r'field-in_tree"><a [^>]*>(\s*)(\w+)</a>.*?field-of_all">([\d.]+ %)', page, re.DOTALL)
    assert [(len(indent), name, part) for indent, name, part in rows] == [
        (0, "Production", "80.0 %"),
        (1, "Data", "32.0 %"),
        (1, "MC", "48.0 %"),
        (0, "Analysis", "20.0 %"),
    ]
    assert root.get(f"{LIST}MC/change/").status_code == 200


@pytest.mark.parametrize(
    ("name", "changes", "field", "told"),
    [
        ("Group", {"value": -1}, "value", "a share of -1 is negative"),
        ("Group", {"campaign": "(mc"}, "campaign", "no regular expression: missing )"),
        ("Group", {"campaign": "a{99999999999}"}, "campaign", "no regular expression: the repetition number is too large"),
        ("Group", {"campaign": "(a+)+$"}, "campaign", "at character 1: what is repeated without end may not itself have"),
        ("Group", {"value": "1e308"}, "value", "a share of 1e+308 is more than 1e+09"),
        ("Group", {"vo": "cms"}, "parent", "Production is a share of demo"),
        ("MC", {}, "name", "already exists"),
        ("Undefined", {}, "name", "the name of what no share takes"),
        ("Alone", {"vo": "cms", "parent": None, "value": 0}, "value", "all its shares are zero"),
    ],
)
def test_what_cannot_work_is_refused_at_its_field(
    root: Client, tree: None, name: str, changes: dict[str, Any], field: str, told: str
) -> None:
    answer = posted(root, name, **changes)
    assert answer.status_code == 200
    assert told in " ".join(answer.context["adminform"].form.errors[field])
    assert GlobalShare.objects.count() == 4


def test_a_share_cannot_be_below_itself(root: Client, tree: None) -> None:
    form = {"parent": "MC", "value": 80, "position": 0, "throttled": "on", "why": "x"}
    answer = root.post(f"{LIST}Production/change/", form)
    assert answer.context["adminform"].form.errors["parent"] == ["a share cannot be below itself"]


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({"prodSourceLabel": "managed", "processingType": "reco"}, "Data"),
        ({"prodSourceLabel": "managed", "processingType": "recon"}, "Data"),
        ({"prodSourceLabel": "managed", "processingType": "evgen"}, "MC"),
        ({"prodSourceLabel": "user"}, "Analysis"),
        ({"prodSourceLabel": "user", "workingGroup": "GP_HIGGS"}, "Undefined"),
        ({"prodSourceLabel": "user", "gshare": "MC"}, "MC"),
    ],
)
def test_tasks_get_the_first_leaf_that_takes_them(tree: None, changes: dict[str, str], share: str) -> None:
    grid("ALPHA")
    task = submitted(parameters("t1", **changes))
    run_agents(names=ROUND)
    task.refresh_from_db()
    assert task.gshare == share


def test_the_page_of_a_task_says_which_share_it_is_of(root: Client, tree: None) -> None:
    grid("ALPHA")
    task = submitted(parameters("t1", prodSourceLabel="user"))
    run_agents(names=ROUND)
    page = root.get(f"/tasks/{task.id}/").content.decode()
    assert '<dt>Share</dt><dd><a href="/shares/Analysis/">Analysis</a></dd>' in page
    assert '<span class="muted" title="Class of resources">SCORE</span>' in page


def test_a_share_that_is_not_there_breaks_the_task_with_that_reason(tree: None) -> None:
    grid("ALPHA")
    wrong, queue = submitted(parameters("t1", gshare="Production")), submitted(parameters("t2", workQueueName="nope"))
    run_agents(names=ROUND)
    reasons = dict(Task.objects.filter(status="broken").values_list("id", "error_dialog"))
    assert reasons == {
        wrong.id: "gshare: the VO has no leaf share Production",
        queue.id: "workQueueName: no work queue nope for this VO and prodSourceLabel",
    }


def test_the_list_tells_which_share_a_task_would_get(root: Client, tree: None) -> None:
    grid("ALPHA")
    task = submitted(parameters("t1", prodSourceLabel="user"))
    assert f"Task {task.id}: share Analysis; now it has none." in root.get(LIST, {"task": task.id}).content.decode()
    other = submitted(parameters("t2", vo="cms"))
    assert f"Task {other.id}: its VO cms has no shares." in root.get(LIST, {"task": other.id}).content.decode()


def test_the_list_tells_why_a_task_would_get_its_share(root: Client, tree: None) -> None:
    grid("ALPHA")
    task = submitted(parameters("t1", prodSourceLabel="user"))
    page = root.get(LIST, {"task": task.id}).content.decode()
    for line in (
        "Data: prodSourceLabel managed does not match user",
        "MC: prodSourceLabel managed|test does not match user",
        "Analysis: takes it",
    ):
        assert line in page
    nobody = submitted(parameters("t2", prodSourceLabel="user", workingGroup="GP_HIGGS"))
    run_agents(1, ["refine"])
    page = root.get(LIST, {"task": nobody.id}).content.decode()
    assert f"Task {nobody.id}: share Undefined; now it has Undefined." in page
    assert "Analysis: workingGroup $ does not match GP_HIGGS" in page


def test_the_page_tells_what_each_share_should_have_has_wants_and_may_have(root: Client, tree: None) -> None:
    (alpha,) = grid("ALPHA")
    ComputingQueue.objects.update(corepower=20)
    submitted(parameters("t1", prodSourceLabel="managed", nEvents=30, nEventsPerJob=10))
    run_agents(names=ROUND)
    take(alpha)
    run_agents(names=ROUND)
    rows = {row["name"]: row for row in root.get("/shares.json").json()["rows"]}
    assert list(rows) == ["Production", "Data", "MC", "Analysis"]
    mc, production, data = rows["MC"], rows["Production"], rows["Data"]
    assert (mc["parent"], mc["level"], mc["percent"], mc["target"], mc["used"], mc["queued"]) == (
        "Production",
        1,
        48,
        9.6,
        20,
        40,
    )
    assert (mc["jobs_running"], mc["jobs_queued"], mc["cores_queued"], mc["entitled"]) == (1, 2, 2, 20)
    assert (production["used"], production["entitled"], data["used"], data["entitled"]) == (20, 20, 0, 0)
    assert [rows[name]["place"] for name in ("Analysis", "Data", "MC", "Production")] == [0, 1 / 3, 2 / 3, None]
    assert rows["MC"]["counted_at"]
    page = root.get("/shares/").content.decode()
    assert "HS06" in page
    assert "Analysis" in page


def test_the_page_tells_of_the_shares_of_ones_own_vos(client: Client, tree: None) -> None:
    GlobalShare.objects.create(name="Top", vo="cms", value=1)
    client.force_login(ensure_user("eve", roles=[("cms", "auditor")]))
    assert [row["name"] for row in client.get("/shares.json").json()["rows"]] == ["Top"]
    assert b"Production" not in client.get("/shares.csv").getvalue()
    page = client.get("/shares/").content.decode()
    assert "Top" in page
    assert "Production" not in page


def test_siblings_that_become_all_zero_are_refused_also_by_a_move(root: Client, tree: None) -> None:
    GlobalShare.objects.filter(name="Analysis").update(value=0)
    form = {"parent": "Analysis", "value": 80, "position": 0, "throttled": "on", "why": "x"}
    errors = root.post(f"{LIST}Production/change/", form).context["adminform"].form.errors
    assert errors["value"] == ["the root: all its shares are zero, so nothing could run below it"]
    assert [error.code for error in errors.as_data()["value"]] == ["tree"]


def test_an_expression_written_past_the_admin_takes_nothing_and_is_shown(root: Client, tree: None) -> None:
    grid("ALPHA")
    GlobalShare.objects.create(name="Hang", vo="demo", value=1, position=-1, processing_type="(.*,)*$")
    GlobalShare.objects.create(name="Bad", vo="demo", value=1, position=-1, processing_type="(")
    task = submitted(parameters("t1", prodSourceLabel="user"))
    run_agents(names=ROUND)
    task.refresh_from_db()
    assert task.gshare == "Analysis"
    page = root.get(LIST, {"task": task.id}).content.decode()
    assert "Hang: it takes no tasks: processing_type: at character 1" in page
    assert "Bad: it takes no tasks: processing_type: no regular expression" in page
    assert [warning.id for warning in check_places(databases=["default"])] == ["workqueues.W001"] * 2


def test_the_page_tells_the_same_of_work_queues_where_they_drive_a_vo(root: Client, tree: None) -> None:
    (alpha,) = grid("ALPHA")
    part = WorkQueue.objects.create(queue_name="part", queue_order=1, vo="demo", queue_type="", is_partition=True, queue_share=60)
    WorkQueue.objects.create(
        queue_name="sub",
        queue_order=9,
        vo="demo",
        queue_type="",
        partition=part,
        criteria="processingType = 'evgen'",
        queue_share=5,
    )
    WorkQueue.objects.create(
        queue_name="idle", queue_order=2, vo="demo", queue_type="", criteria="campaign = 'x'", queue_share=40
    )
    submitted(parameters("t1", nEvents=30, nEventsPerJob=10))
    run_agents(names=ROUND)
    take(alpha)
    run_agents(1, ROUND)
    rows = root.get("/shares.json").json()["rows"]
    assert {(row["kind"], row["drives"]) for row in rows} == {("share", True)}
    set_override("shares", "SHARE_MODEL", "work_queue", vo="demo", who="ada", why="test")
    run_agents(1, ROUND)
    rows = root.get("/shares.json").json()["rows"]
    assert {row["drives"] for row in rows if row["kind"] == "share"} == {False}
    queues = [row for row in rows if row["kind"] == "work queue"]
    assert [(row["name"], row["parent"], row["level"], row["value"]) for row in queues] == [
        ("part", "", 0, 60),
        ("sub", "part", 1, 5),
        ("idle", "", 0, 40),
        ("default", "", 0, None),
    ]
    sub, idle = queues[1], queues[2]
    assert (sub["percent"], sub["target"], sub["used"], sub["queued"], sub["entitled"]) == (100, 10, 10, 20, 10)
    assert (sub["jobs_running"], sub["jobs_queued"], sub["cores_running"], sub["above"]) == (1, 2, 1, False)
    assert (idle["percent"], idle["entitled"]) == (0, 0)
    page = root.get("/shares/").content.decode()
    assert "counted only" in page
    assert "work queue" in page


def test_each_save_is_a_change_with_its_reason_and_an_older_form_is_refused(root: Client, tree: None) -> None:
    change = f"{LIST}MC/change/"
    seen = root.get(change).context["adminform"].form.fields["seen"].initial
    form = {"parent": "Production", "value": 70, "position": 2, "throttled": "on", "why": "more MC", "seen": seen}
    assert root.post(change, form | {"why": ""}).context["adminform"].form.errors["why"]
    assert root.post(change, form | {"prod_source_label": "managed|test"}).status_code == 302
    (line,) = Change.objects.filter(kind="share")
    assert in_words("share", line.before, line.after) == "value 60 \N{RIGHTWARDS ARROW} 70"
    assert (line.change_set.who, line.change_set.why, line.change_set.source) == ("root", "more MC", "admin")
    late = root.post(change, form | {"value": 10})
    assert "was changed meanwhile: by root: value 60" in str(late.context["adminform"].form.non_field_errors())
    again = root.post(f"{LIST}Production/remove/", {"why": "gone"})
    assert "there are shares below it: Data, MC" in str(again.context["form"].errors)
    assert root.post(f"{LIST}Analysis/remove/", {"why": "gone"}).status_code == 302
    assert Audit.objects.filter(act="globalshare.delete").count() == 1
    revert(ChangeSet.objects.all()[0], who="root", why="back")
    assert GlobalShare.objects.get(name="Analysis").working_group == "$"
