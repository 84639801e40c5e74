"""`explain`: why a task is where it is, from what is stored."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from broker_site.agency.run import run_agent
from brokerage.ledger.decisions import drop_old_snapshots
from brokerage.models import ComputingQueue, Decision, GridSnapshot
from tests.builders import grid, parameters, submitted
from workqueues.models import Task

pytestmark = pytest.mark.django_db(transaction=True)


def explain(task: Task, *options: str) -> str:
    out = io.StringIO()
    call_command("explain", str(task.id), *options, stdout=out)
    return out.getvalue()


def decided(**more: Any) -> Task:
    """A task for which the brokerage has looked at ALPHA, BETA (offline) and GAMMA (too small)."""
    grid("ALPHA", "BETA", "GAMMA")
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    ComputingQueue.objects.filter(name="GAMMA").update(maxrss=100)
    task = submitted(parameters(**more))
    for name in ("refine", "feed", "generate"):
        run_agent(name, looked=True)
    task.refresh_from_db()
    return task


def test_before_a_decision_it_says_who_works_on_the_task_next() -> None:
    grid()
    text = explain(submitted(parameters()))
    assert "it is registered: the agent refine turns its parameters into datasets next" in text
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
    assert "it is pending" in text
    assert "next look at" in text
    assert "none of 3 queues can ever take it; the closest is ALPHA" in text


def test_one_queue_is_told_criterion_by_criterion() -> None:
    task = decided()
    lines = [" ".join(line.split()) for line in explain(task, "--queue", "GAMMA").splitlines()]
    assert any(line.startswith("GAMMA: not chosen, -lowmemory: ") for line in lines)
    assert any(line.startswith("ok -status") and "online" in line for line in lines)
    assert len({line for line in lines if line.startswith("ok -disk")}) == 2
    assert not [line for line in lines if line.endswith((" site", "included", "None"))]
    assert any(line.startswith("skip -lowmemory") for line in lines)
    assert any("ALPHA: chosen" in line for line in explain(task, "--queue", "ALPHA").splitlines())


def test_json_has_the_whole_matrix() -> None:
    task = decided()
    document = json.loads(explain(task, "--json"))
    assert (document["task_id"], document["status"]) == (task.id, "running")
    explanation = document["decisions"][0]["explanation"]
    assert {skip["name"]: skip["criterion"] for skip in explanation["skipped"]} == {"BETA": "-status", "GAMMA": "-lowmemory"}
    assert set(explanation["matrix"]) == {"ALPHA", "BETA", "GAMMA"}
    asked = json.loads(explain(task, "--json", "--queue", "GAMMA"))["decisions"][0]["why_not"]
    assert (asked["name"], asked["chosen"], asked["first"]["criterion"]) == ("GAMMA", False, "-lowmemory")


def test_without_its_snapshot_a_decision_tells_what_its_record_has() -> None:
    task = decided()
    GridSnapshot.objects.all().delete()
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


@pytest.mark.parametrize(("options", "words"), [(["--queue", "NOWHERE"], "knew no queue 'NOWHERE'")])
def test_an_unknown_queue_is_told(options: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        explain(decided(), *options)


def test_an_unknown_task_is_told() -> None:
    with pytest.raises(CommandError, match="there is no task 77"):
        call_command("explain", "77")
