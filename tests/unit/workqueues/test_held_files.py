"""What becomes of inputs that jobs could not read, from how their copies stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from workqueues.rules.jobs.held_files import CopyLook, HeldFile, Pauses, file_verdict, storage_verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAUSES = Pauses(600.0, 30.0)
FILE = HeldFile(1, "f", "ready", "reported missing at ALPHA")
HERE, GONE, BAD = CopyLook("A", "intact"), CopyLook("A", "absent"), CopyLook("A", "damaged")
AWAY = CopyLook("B", "absent", "down", "storage B is down")
UNMARKED = CopyLook("C", "absent", "unmarked", "storage C was never marked")


@pytest.mark.parametrize(
    ("looks", "queues", "status"),
    [
        ([HERE], {"ALPHA"}, "ready"),
        ([GONE, HERE], {"ALPHA"}, "ready"),
        ([HERE], {"ALPHA", "BETA"}, "lost"),
        ([HERE, UNMARKED], {"ALPHA", "BETA"}, "ready"),
        ([HERE, AWAY], {"ALPHA", "BETA"}, "ready"),
        ([GONE], {"ALPHA"}, "lost"),
        ([], {"ALPHA"}, "lost"),
        ([BAD], {"ALPHA"}, "broken"),
        ([BAD, GONE], {"ALPHA"}, "broken"),
        ([GONE, AWAY], {"ALPHA"}, "held"),
        ([BAD, AWAY, UNMARKED], {"ALPHA"}, "held"),
        ([GONE, UNMARKED], {"ALPHA"}, "ready"),
    ],
)
def test_a_verdict_needs_a_storage_that_answers_and_a_second_look(looks: list[CopyLook], queues: set[str], status: str) -> None:
    first = file_verdict(FILE, looks, queues, NOW, PAUSES)
    if status in ("ready", "held"):
        assert first.status == status
        assert first.absent_since is None, "time during which nothing can be known does not count"
        return
    assert (first.status, first.absent_since, first.look_due) == ("held", NOW, NOW + timedelta(minutes=10))
    again = FILE._replace(held=first.why, absent_since=first.absent_since)
    early = file_verdict(again, looks, queues, NOW + timedelta(minutes=9), PAUSES)
    assert (early.status, early.absent_since, early.look_due) == ("held", NOW, NOW + timedelta(minutes=10))
    second = file_verdict(again, looks, queues, NOW + timedelta(minutes=10), PAUSES)
    assert (second.status, second.why) == (status, "reported missing at ALPHA; confirmed")


def test_what_is_lost_is_looked_for_again_and_found() -> None:
    lost = FILE._replace(status="lost", held="", absent_since=NOW)
    still = file_verdict(lost, [GONE], (), NOW, PAUSES)
    assert (still.status, still.look_due) == ("held", NOW + timedelta(minutes=10))
    found = file_verdict(lost, [HERE], (), NOW, PAUSES)
    assert (found.status, found.why, found.look_due) == ("ready", "it is there again", None)


def test_a_file_that_two_queues_cannot_read_although_it_is_there_is_not_found_and_lost_by_turns() -> None:
    disputed = FILE._replace(absent_since=NOW - timedelta(hours=1))
    verdict = file_verdict(disputed, [HERE], {"ALPHA", "BETA"}, NOW, PAUSES)
    assert (verdict.status, verdict.look_due) == ("lost", None)


def test_a_file_that_waits_for_a_storage_is_ready_when_that_is_back() -> None:
    waiting = FILE._replace(held="storage B was down at ALPHA", storage="B")
    on = storage_verdict(waiting, "storage B is down: gone", NOW, PAUSES)
    assert (on.status, on.look_due) == ("held", NOW + timedelta(seconds=30))
    later = storage_verdict(waiting._replace(held=on.why), "", NOW, PAUSES)
    assert (later.status, later.why) == ("ready", "storage B was down at ALPHA; it is back")
