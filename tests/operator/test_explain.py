"""`explain`: why a task is where it is, from what is stored."""

from __future__ import annotations

import io
import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.decisions import drop_old_snapshots
from brokerage.models import ComputingQueue, Decision, Pilot, StoredSnapshot
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.ledger.commands import command
from workqueues.ledger.task_changes import set_attributes
from workqueues.models import Task
from workqueues.rules.task.changes import AttributesAsked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def few_criteria(transactional_db: None) -> None:
    """The generic policy decides: eight criteria are enough to see how they are told."""
    set_override("core", "POLICY_analysis", "generic", who="test", why="few criteria")


def explain(task: Task, *options: str) -> str:
    out = io.StringIO()
    call_command("explain", str(task.id), *options, stdout=out)
    return out.getvalue()


def decided(unified: str = "", **more: Any) -> Task:
    """A task for which the brokerage has looked at ALPHA, BETA (offline) and GAMMA (too small); `unified`: one with parts."""
    grid("ALPHA", "BETA", "GAMMA")
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    ComputingQueue.objects.filter(name="GAMMA").update(maxrss=100)
    ComputingQueue.objects.filter(name=unified).update(capability="ucore", corecount=8)
    task = submitted(parameters(**more))
    for name in ("refine", "feed", "generate"):
        run_agent(name, looked=True)
    task.refresh_from_db()
    return task


def test_before_a_decision_it_says_who_works_on_the_task_next() -> None:
    grid()
    text = explain(submitted(parameters()))
    assert "Registered: the task is accepted" in text
    assert "agent: The agent refine" in text
    assert "no decision is stored" in text


def test_it_tells_which_queue_was_chosen_by_which_weight_and_why_the_others_were_not() -> None:
    lines = [" ".join(line.split()) for line in explain(decided()).splitlines()]
    assert any(line.startswith("1 of 3 queues taken; the best is ALPHA") for line in lines)
    assert any(line.startswith("ALPHA weight ") for line in lines)
    assert "-status 1 skipped, 2 left (persistent)" in lines
    assert any(line.startswith("BETA -status ") for line in lines)
    assert any(line.startswith("GAMMA -lowmemory ") and "100" in line for line in lines)


def test_it_tells_why_a_task_waits() -> None:
    text = explain(decided(ramCount=9000))
    assert "Pending: none of 3 queues can ever take it; the closest is ALPHA" in text
    assert "next look at" in text
    assert "due now" not in text
    assert "none of 3 queues can ever take it; the closest is ALPHA" in text


def test_nothing_that_somebody_wrote_steers_the_terminal() -> None:
    task = decided(ramCount=9000)
    set_attributes(task, AttributesAsked(ramCount=900, comment="\x1b[31mred\nPending: all is well"), "user:eve")
    Task.objects.filter(id=task.id).update(error_dialog="\x1b]0;title\x07 is wrong")
    text = explain(task)
    assert "\\x1b[31mred\\nPending: all is well" in text
    assert "\x1b" not in text and "\x07" not in text


def test_a_next_look_that_is_late_is_told_as_due() -> None:
    task = decided(ramCount=9000)
    Task.objects.filter(id=task.id).update(next_look_at=datetime(2026, 1, 1, 8, tzinfo=UTC))
    text = explain(task)
    assert "  next look due now, since 2026-01-01 08:00:00 UTC" in text
    assert "next look at" not in text


def test_one_queue_is_told_criterion_by_criterion() -> None:
    task = decided()
    lines = [" ".join(line.split()) for line in explain(task, "--queue", "GAMMA").splitlines()]
    assert any(line.startswith("GAMMA: not chosen, -lowmemory: ") for line in lines)
    assert any(line.startswith("ok -status") and "online" in line for line in lines)
    assert len({line for line in lines if line.startswith("ok -disk")}) == 2
    assert not [line for line in lines if line.endswith((" site", "included", "None"))]
    assert any(line.startswith("skip -lowmemory") for line in lines)
    assert any("ALPHA: chosen" in line for line in explain(task, "--queue", "ALPHA").splitlines())


def test_a_unified_queue_is_told_part_by_part_on_every_way(client: Client) -> None:
    task = decided(unified="GAMMA")
    parts = ["GAMMA/MCORE", "GAMMA/MCORE_HIMEM", "GAMMA/SCORE", "GAMMA/SCORE_HIMEM"]
    lines = explain(task, "--queue", "GAMMA").splitlines()
    assert [line.split(":")[0].strip() for line in lines if re.match(r"  GAMMA/\w+: ", line)] == parts
    (decision,) = json.loads(explain(task, "--json", "--queue", "GAMMA"))["decisions"]
    assert [each["name"] for each in decision["why_not"]] == parts
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    told = client.get(f"/api/v1/decisions/{decision['id']}/", {"queue": "GAMMA"}).json()["why_not"]
    assert [each["name"] for each in told] == parts
    page = client.get(f"/tasks/{task.id}/brokerage/", {"queue": "GAMMA"}).content.decode()
    assert re.findall(r"Why not (GAMMA/\w+)<", page) == parts
    (one,) = client.get(f"/api/v1/decisions/{decision['id']}/", {"queue": "GAMMA/SCORE"}).json()["why_not"]
    assert one["name"] == "GAMMA/SCORE"
    assert client.get(f"/api/v1/decisions/{decision['id']}/", {"queue": "NOWHERE"}).status_code == 404


def test_json_has_the_whole_matrix() -> None:
    task = decided()
    document = json.loads(explain(task, "--json"))
    assert (document["task_id"], document["status"]) == (task.id, "running")
    explanation = document["decisions"][0]["explanation"]
    assert {skip["name"]: skip["criterion"] for skip in explanation["skipped"]} == {"BETA": "-status", "GAMMA": "-lowmemory"}
    assert set(explanation["matrix"]) == {"ALPHA", "BETA", "GAMMA"}
    asked = json.loads(explain(task, "--json", "--queue", "GAMMA"))["decisions"][0]["why_not"][0]
    assert (asked["name"], asked["chosen"], asked["first"]["criterion"]) == ("GAMMA", False, "-lowmemory")


def test_without_its_snapshot_a_decision_tells_what_its_record_has() -> None:
    task = decided()
    StoredSnapshot.objects.all().delete()
    drop_old_snapshots(0)
    text = explain(task)
    assert "1 of 3 candidates taken; the best is ALPHA" in text
    assert "the snapshot is no longer kept" in text
    with pytest.raises(CommandError, match="no longer kept"):
        explain(task, "--queue", "GAMMA")


def test_a_record_of_another_format_is_told_as_such() -> None:
    task = decided()
    Decision.objects.update(record=b"\x09")
    assert "a format that is no longer read" in explain(task)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--queue", "NOWHERE"], "knew no queue 'NOWHERE'$"),
        (["--queue", "ALHPA"], "knew no queue 'ALHPA'; the nearest name is ALPHA"),
    ],
)
def test_an_unknown_queue_is_told(options: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        explain(decided(), *options)


def test_an_unknown_task_is_told() -> None:
    with pytest.raises(CommandError, match="there is no task 77"):
        call_command("explain", "77")


def lines_of(*options: str) -> list[str]:
    out = io.StringIO()
    call_command("explain", *options, stdout=out)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def pending() -> Task:
    return decided(ramCount=9000)


def contents() -> list[tuple[Any, ...]]:
    return [
        *Decision.objects.order_by("id").values_list("id", "n_times", "last_at"),
        *StoredSnapshot.objects.values_list("id", "at"),
        *Task.objects.values_list("id", "status", "status_since", "epoch"),
    ]


def test_what_would_change_a_verdict_stands_below_it() -> None:
    lines = lines_of(str(pending().id), "--queue", "GAMMA")
    assert any(line.startswith("of the queue: maxrss 100 (would do: 9000)") for line in lines)
    assert any(line.startswith("of the task: ") and "ramCount 9000" in line for line in lines)
    assert any(line.endswith("(what it would have had)") for line in lines)


def test_a_dry_run_decides_on_the_grid_of_now_and_writes_nothing() -> None:
    task = pending()
    ComputingQueue.objects.filter(name="GAMMA").update(maxrss=16000)
    before = contents()
    lines = lines_of(str(task.id), "--dry-run")
    assert lines[0] == "If the brokerage looked now (nothing is written):"
    assert any(line.startswith("1 of 3 queues taken; the best is GAMMA") for line in lines)
    assert contents() == before
    assert lines_of(str(task.id), "--try-again") == lines, "its former name"


def test_what_if_tells_both_funnels_and_which_queues_changed() -> None:
    task = pending()
    before = contents()
    lines = lines_of(str(task.id), "--what-if", "ramCount=4000", "--what-if", "queue.BETA.status=online")
    assert "And with ramCount = 4000 (is 9000), queue.BETA.status = online (is offline):" in lines
    assert "-lowmemory 0 2 left" in lines
    assert any(line.startswith("ALPHA -lowmemory -> chosen") for line in lines)
    assert any(line.startswith("BETA -status -> chosen") for line in lines)
    assert not any(line.startswith("GAMMA -lowmemory ->") for line in lines)
    assert contents() == before
    assert "no verdict changes" in lines_of(str(task.id), "--what-if", "config.BEST_GENERIC=7")


def test_what_if_as_json() -> None:
    found = json.loads(explain(pending(), "--what-if", "ramCount=4000", "--json"))
    assert (found["before"]["outcome"], found["after"]["outcome"]) == ("pending", "assign")
    assert found["edits"] == [{"name": "ramCount", "before": 9000, "after": 4000}]
    assert [(c["name"], c["before"], c["after"]) for c in found["changed"]] == [("ALPHA", "-lowmemory", "chosen")]


def test_bad_edits_are_all_told_with_field_and_rule() -> None:
    task = pending()
    with pytest.raises(CommandError, match="ramCount: type: expected a number") as refused:
        explain(task, "--what-if", "ramCount=lots", "--what-if", "queue.ALPHA.maxrs=1")
    assert "queue.ALPHA.maxrs: unknown: a queue has no attribute 'maxrs'" in str(refused.value)
    assert "the nearest known one is maxrss" in str(refused.value)


def test_a_task_that_has_nothing_to_decide_says_so() -> None:
    task = decided()
    command(task.id, "kill", "user:ada", "not needed")
    run_agents()
    with pytest.raises(CommandError, match=r"nothing would be decided about task \d+ now: the task has ended: aborted"):
        explain(task, "--dry-run")


def test_a_queue_alone_tells_why_it_gets_no_work() -> None:
    first = pending()
    lines = lines_of("--queue", "GAMMA")
    assert lines[0] == "Queue GAMMA: Empty: 0 of 1 latest decisions took it; 1 skipped it by -lowmemory."
    assert f"-lowmemory 1 1 1 persistent tasks {first.id}" in lines
    assert lines_of("--queue", "BETA")[0] == "Queue BETA: Empty: the queue is offline."
    found = json.loads("\n".join(lines_of("--queue", "BETA", "--json")))
    assert [(t["criterion"], t["first"], t["failed"], t["alone"], t["lasts"]) for t in found["tallies"]] == [
        ("-status", 1, 1, 0, False),
        ("-lowmemory", 0, 1, 0, True),
    ]
    with pytest.raises(CommandError, match=r"there is no computing queue NOWHERE$"):
        call_command("explain", "--queue", "NOWHERE")
    with pytest.raises(CommandError, match="there is no computing queue gamma; the nearest name is GAMMA"):
        call_command("explain", "--queue", "gamma")


def test_a_queue_with_jobs_that_nobody_fetches_says_so() -> None:
    decided()
    Pilot.objects.update(last_seen=datetime(2026, 11, 1, tzinfo=UTC))
    assert "wait: no pilot has asked for work in the last minutes" in lines_of("--queue", "ALPHA")[0]


@pytest.mark.parametrize("options", [[], ["--queue", "ALPHA", "--dry-run"], ["1", "--queue", "A", "--what-if", "ramCount=1"]])
def test_options_that_do_not_go_together_are_refused(options: list[str]) -> None:
    if "1" in options:
        options[0] = str(pending().id)
    with pytest.raises(CommandError):
        call_command("explain", *options)


@pytest.mark.parametrize("more", [{}, {"ramCount": 9000}])
def test_an_exported_decision_is_taken_again_from_its_documents(tmp_path: Path, more: dict[str, Any]) -> None:
    task = decided(**more)
    said = lines_of(str(task.id), "--export", str(tmp_path / "why"))
    _, *arguments = shlex.split(said[-1])
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    again = json.loads(out.getvalue())
    stored = json.loads(explain(task, "--json"))["decisions"][0]["explanation"]
    assert (again["policy"], again["outcome"], again["closest"] or "") == (stored["policy"], stored["outcome"], stored["closest"])
    assert [(c["queue"], c["weight"], c["factors"]) for c in again["chosen"]] == [
        (c["name"], c["weight"], c["factors"]) for c in stored["chosen"]
    ]
    assert again["skipped"] == sorted(
        ({"queue": s.pop("name"), **{k: v for k, v in s.items() if k != "lasts"}} for s in stored["skipped"]),
        key=lambda skip: str(skip["queue"]),
    )


def test_what_is_no_longer_kept_cannot_be_exported(tmp_path: Path) -> None:
    task = decided()
    Decision.objects.update(snapshot=None)
    with pytest.raises(CommandError, match="its snapshot is no longer kept"):
        explain(task, "--export", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
