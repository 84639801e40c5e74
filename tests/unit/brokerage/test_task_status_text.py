"""What a task is said to wait for, state by state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from broker_site.foundation.agency.duties import AGENTS, Health, agent_of
from brokerage.rules.explain.task_status_text import (
    ErrorGroup,
    JobErrors,
    ParentTask,
    QueueLoad,
    SuspectFiles,
    TaskStatus,
    ThrottleCause,
    headline,
    reasons,
)
from workqueues.rules.elements.task_elements import ElementAtChild, TaskElements
from workqueues.states import TASK

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALM = TaskStatus("running")


def said(task: TaskStatus) -> str:
    return " ".join(reason.message for reason in reasons(task))


@pytest.mark.parametrize("status", TASK.states)
def test_every_state_has_a_headline_and_reasons_do_not_fail(status: str) -> None:
    task = replace(CALM, status=status)
    assert headline(task).lower().startswith(status)
    assert isinstance(reasons(task), list)


def test_the_reason_left_with_a_task_is_the_headline() -> None:
    task = replace(CALM, status="pending", reason="none of 4 queues can ever take it", old_status="ready")
    assert headline(task) == "Pending: none of 4 queues can ever take it"
    assert "None of 4 queues can ever take it." in said(task)
    assert "it is ready again" in said(task)


def test_a_running_parent_is_named_with_its_page() -> None:
    task = replace(CALM, status="pending", reason="parent runs", parent=ParentTask(7, "first", "running"))
    (reason,) = [r for r in reasons(task) if r.kind == "parent"]
    assert "task 7 (first), is still running" in reason.message and reason.task_id == 7
    assert not [r for r in reasons(replace(task, parent=ParentTask(7, "first", "done"))) if r.kind == "parent"]


def test_held_files_are_counted_with_a_reason() -> None:
    assert "3 input files are held back: reported missing at ALPHA." in said(
        replace(CALM, suspect=SuspectFiles(3, "reported missing at ALPHA"))
    )


ERRORS = JobErrors((ErrorGroup("PAYLOAD_EXIT", 3, "ValueError: no events", 9), ErrorGroup("WALLTIME", 1, "", 7)), 4)


def test_a_task_that_ended_badly_tells_with_what_its_jobs_ended() -> None:
    task = replace(CALM, status="failed", reason="none of 2 files was processed", errors=ERRORS)
    why = "3 of 4 jobs ended with PAYLOAD_EXIT: ValueError: no events"
    assert headline(task) == f"Failed: none of 2 files was processed; {why}"
    broken = replace(task, status="broken", reason="none of its first jobs succeeded, 3 failed")
    assert headline(broken) == f"Broken: none of its first jobs succeeded, 3 failed; {why}"
    assert ERRORS.sentences()[1] == "1 of 4 jobs ended with WALLTIME"
    assert task.to_document()["job_errors"][0]["job_id"] == 9
    assert "PAYLOAD_EXIT" not in headline(replace(task, status="running"))
    assert "PAYLOAD_EXIT" not in headline(replace(task, status="done", reason=""))


def test_jobs_without_pilots_are_the_trouble() -> None:
    alone = replace(CALM, loads=(QueueLoad("ALPHA", "online", 5, 0, 0),))
    assert "5 jobs wait at ALPHA, where no pilot was seen" in said(alone) and reasons(alone)[0].tone == "bad"
    many = replace(CALM, loads=tuple(QueueLoad(f"Q{n}", "online", 2, 0, 0) for n in range(9)))
    told = [one.message for one in reasons(many) if "no pilot was seen" in one.message]
    assert told == ["18 jobs wait at Q0, Q1, Q2, Q3, Q4 and 4 more queues, where no pilot was seen in the last minutes."]
    open_to = replace(CALM, loads=(*many.loads, QueueLoad("any of 16 queues", "online", 6, 0, 0, queues=16)))
    assert "6 jobs wait at any of 16 queues, where no pilot was seen" in said(open_to)
    assert "1 job waits at ALPHA for a free pilot that suits it; 2 pilots are there." in said(
        replace(CALM, loads=(QueueLoad("ALPHA", "online", 1, 0, 2),))
    )
    (busy,) = reasons(replace(CALM, loads=(QueueLoad("ALPHA", "online", 5, 1, 0),)))
    assert (busy.message, busy.tone) == ("5 jobs wait at ALPHA for a free pilot that suits them.", "idle"), "one is leased"
    assert "which is offline" in said(replace(CALM, loads=(QueueLoad("ALPHA", "offline", 1, 0, 2),)))
    assert not reasons(replace(CALM, loads=(QueueLoad("ALPHA", "online", 0, 9, 2),)))


def test_a_command_waits_for_the_jobs_to_go() -> None:
    task = replace(
        CALM, status="aborting", command_by="ada", reason="wrong release", loads=(QueueLoad("ALPHA", "online", 1, 2, 3),)
    )
    assert said(task) == "It is being killed, as ada asked; it waits until 3 jobs are gone."


@pytest.mark.parametrize(
    ("health", "words"), [("off", "switched off"), ("failing", "fails"), ("late", "is late"), ("never", "has not run")]
)
def test_the_agent_whose_turn_it_is_is_named_with_what_is_wrong(health: Health, words: str) -> None:
    assert words in said(replace(CALM, status="registered", agent=(AGENTS["refine"], health)))
    assert said(replace(CALM, status="registered", agent=(AGENTS["refine"], "well"))) == (
        "The agent refine is next: it turns parameters into datasets, templates and needs."
    )


def test_no_agent_is_next_while_the_jobs_of_a_task_live() -> None:
    task = replace(CALM, agent=(AGENTS["generate"], "well"), loads=(QueueLoad("ALPHA", "online", 0, 9, 2),))
    assert reasons(task) == []
    assert "The agent generate is next" in said(replace(task, loads=()))
    assert "is late" in said(replace(task, agent=(AGENTS["generate"], "late")))


def test_every_live_state_that_an_agent_leaves_has_an_agent_whose_turn_it_is() -> None:
    """States of features that are not built yet have none, nor have those in which a person has to do something."""
    without = {status for status in TASK.live if agent_of(status) is None}
    assert without == {"exhausted", "paused"}


def test_a_task_all_of_whose_jobs_wait_is_not_said_to_run() -> None:
    task = replace(CALM, loads=(QueueLoad("GAMMA", "offline", 16, 0, 0),))
    assert headline(task) == "Running: 16 jobs wait at GAMMA, which is offline."
    some = (QueueLoad("GAMMA", "offline", 15, 0, 0), QueueLoad("ALPHA", "online", 2, 1, 1))
    assert headline(replace(task, loads=some)) == "Running: 15 jobs wait at GAMMA, which is offline."
    busy = (QueueLoad("ALPHA", "online", 2, 1, 1),)
    at_work = "the task is at work; further jobs are made as long as input is left, and queues have room"
    assert headline(replace(task, loads=busy)) == f"Running: {at_work}."


def test_a_task_whose_work_child_brokers_do_says_where_its_elements_are() -> None:
    north = ElementAtChild(5, "Running", "north", "ALPHA", 10, 3)
    task = replace(CALM, elements=TaskElements({"Available": 5, "Running": 1, "Done": 2}, [north]))
    assert headline(task) == (
        "Running: child brokers do its work: of 8 elements 1 is at north, 5 wait to be pulled and 2 have ended"
    )
    several = TaskElements({"Acquired": 1, "Running": 1}, [north, replace(north, child="west")])
    assert headline(replace(task, elements=several)).endswith("of 2 elements 2 are at child brokers")
    assert headline(replace(task, elements=TaskElements({"Available": 1}))).endswith("its only element waits to be pulled")
    own = (QueueLoad("ALPHA", "online", 0, 1, 1),)
    assert headline(replace(task, loads=own)).endswith("2 have ended; jobs of its own have been made, too")
    assert headline(replace(task, reason="no room")) == "Running: no room"


def test_a_task_with_bad_jobs_is_not_said_to_have_had_no_input() -> None:
    task = replace(CALM, status="finished", errors=ERRORS)
    assert headline(task).startswith("Finished: part of the input was processed; the rest was given up or lost; 3 of 4 jobs")
    assert "there was no input" in headline(replace(task, errors=JobErrors()))


def test_a_next_look_whose_time_is_over_is_due_now() -> None:
    later = replace(CALM, status="pending", next_look_at=NOW, now=NOW - timedelta(seconds=1))
    assert later.next_look == "next look at 2026-01-01 00:00:00 UTC"
    assert replace(later, now=NOW).next_look == "next look due now, since 2026-01-01 00:00:00 UTC"
    assert replace(later, next_look_at=None).next_look == ""


def test_a_throttled_task_does_not_tell_a_time_that_is_over() -> None:
    task = replace(CALM, status="throttled", throttles=(ThrottleCause("retries", "many failed", NOW),), now=NOW)
    assert said(task) == "It makes no new jobs while this holds: many failed."
    assert "until 2026-01-01 00:00:00 UTC, or while" in said(replace(task, now=NOW - timedelta(seconds=1)))
    task = replace(task, throttles=(), throttled_until=NOW)
    assert said(task) == "Too many of its tries failed; since 2026-01-01 00:00:00 UTC it may make new jobs again."


def test_a_throttled_task_says_until_when() -> None:
    task = replace(CALM, status="throttled", throttled_until=NOW, reason="too many failures")
    assert "no new jobs until 2026-01-01 00:00:00 UTC" in said(task)


def test_a_task_that_ended_waits_for_nothing() -> None:
    assert reasons(replace(CALM, status="done", suspect=SuspectFiles(1, "x"))) == []
    assert (
        headline(replace(CALM, status="failed", reason="none of 6 files was processed"))
        == "Failed: none of 6 files was processed"
    )
