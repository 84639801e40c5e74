"""What a task is said to wait for, state by state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from monitoring.explain.waiting import Standing, headline, reasons, speaks_for
from monitoring.queries.agents import AgentRow, Health
from monitoring.queries.decisions import DecisionRow
from monitoring.queries.task import Relative
from monitoring.queries.waiting import HeldFiles, QueueLoad
from workqueues.states import TASK

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALM = Standing("running", "", "", None, "", None, HeldFiles(0, ""), (), None)


def agent(name: str, health: Health) -> AgentRow:
    return AgentRow(name, health, True, 10.0, NOW, NOW, 0.1, 0, 0, 1, None, "")


def said(standing: Standing) -> str:
    return " ".join(reason.said for reason in reasons(standing))


@pytest.mark.parametrize("status", TASK.states)
def test_every_state_has_a_headline_and_reasons_do_not_fail(status: str) -> None:
    standing = replace(CALM, status=status)
    assert headline(standing).lower().startswith(status)
    assert isinstance(reasons(standing), list)


def test_the_verdict_of_the_brokerage_is_the_headline() -> None:
    standing = replace(
        CALM, status="pending", error_dialog="0 of 4 queues passed", verdict="Pending: none of 4 queues fits", old_status="ready"
    )
    assert headline(standing) == "Pending: none of 4 queues fits"
    assert "0 of 4 queues passed. The decision below says why." in said(standing)
    assert "it is ready again" in said(standing)


def test_a_running_parent_is_named_with_its_page() -> None:
    standing = replace(CALM, status="pending", error_dialog="parent runs", parent=Relative(7, "first", "running"))
    (reason,) = [r for r in reasons(standing) if r.kind == "parent"]
    assert "task 7 (first), is still running" in reason.said and reason.task_id == 7
    assert not [r for r in reasons(replace(standing, parent=Relative(7, "first", "done"))) if r.kind == "parent"]


def test_held_files_are_counted_with_a_reason() -> None:
    assert "3 input files are held back: reported missing at ALPHA." in said(
        replace(CALM, held=HeldFiles(3, "reported missing at ALPHA"))
    )


def test_jobs_without_pilots_are_the_trouble() -> None:
    alone = replace(CALM, loads=(QueueLoad("ALPHA", "online", 5, 0, 0),))
    assert "5 jobs wait at ALPHA, where no pilot has asked" in said(alone) and reasons(alone)[0].tone == "bad"
    assert "1 job waits at ALPHA for a pilot to be free; 2 pilots are there." in said(
        replace(CALM, loads=(QueueLoad("ALPHA", "online", 1, 0, 2),))
    )
    assert "which is offline" in said(replace(CALM, loads=(QueueLoad("ALPHA", "offline", 1, 0, 2),)))
    assert not reasons(replace(CALM, loads=(QueueLoad("ALPHA", "online", 0, 9, 2),)))


def test_a_command_waits_for_the_jobs_to_go() -> None:
    standing = replace(
        CALM, status="aborting", command_by="ada", error_dialog="wrong release", loads=(QueueLoad("ALPHA", "online", 1, 2, 3),)
    )
    assert said(standing) == "ada asked that the task be killed; it waits until 3 jobs are gone."


@pytest.mark.parametrize(
    ("health", "words"), [("off", "switched off"), ("failing", "fails"), ("late", "is late"), ("never", "has not run")]
)
def test_the_agent_in_turn_is_named_when_it_is_not_well(health: Health, words: str) -> None:
    assert words in said(replace(CALM, status="registered", agent=agent("refine", health)))
    assert not reasons(replace(CALM, status="registered", agent=agent("refine", "well")))


def test_a_throttled_task_says_until_when() -> None:
    standing = replace(CALM, status="throttled", throttled_time=NOW, error_dialog="too many failures")
    assert "no new jobs until 2026-01-01 00:00:00 UTC" in said(standing)


def test_a_task_that_ended_waits_for_nothing() -> None:
    assert reasons(replace(CALM, status="done", held=HeldFiles(1, "x"))) == []
    assert (
        headline(replace(CALM, status="failed", error_dialog="none of 6 files was processed"))
        == "Failed: none of 6 files was processed"
    )


def test_an_old_decision_is_not_blamed_for_a_later_wait() -> None:
    decision = DecisionRow(1, "generic", "pending", 4, 0, 1, NOW, NOW, 0, "1.1")
    assert speaks_for("pending", NOW + timedelta(seconds=1), decision)
    assert not speaks_for("pending", NOW + timedelta(hours=1), decision)
    assert not speaks_for("running", NOW, decision)
    assert not speaks_for("pending", NOW, replace(decision, outcome="assign"))
