"""The history of a task that waits: what it was looked at for nothing is told as one wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from monitoring.queries.changes import Move, folded
from tests.api.test_task_changes import page
from tests.builders import parameters, submitted
from workqueues.models import TaskChange

BEGAN = datetime(2026, 11, 28, tzinfo=UTC)


def history(*steps: tuple[str, str, str]) -> list[Move]:
    """Moves 10 s apart, newest first, from (old, new, why) in the order of time; the last state lasts still."""
    moves = [
        Move(BEGAN + timedelta(seconds=10 * n), old, new, "agent:x", why, 10.0 if n + 1 < len(steps) else None)
        for n, (old, new, why) in enumerate(steps)
    ]
    return moves[::-1]


LOOK = ("pending", "registered", "looked at")


def test_a_wait_that_goes_on_for_the_same_reason_is_one_from_its_beginning() -> None:
    wait = ("registered", "pending", "for its parent")
    moves = folded(history(("", "registered", "submitted"), wait, LOOK, wait, LOOK, wait, LOOK))
    assert [(move.new, move.again, move.lasted_s) for move in moves] == [
        ("registered", 0, None),
        ("pending", 2, 50.0),
        ("registered", 0, 10.0),
    ]
    assert moves[1].at == BEGAN + timedelta(seconds=10)
    assert folded(history(wait, LOOK, wait))[0].lasted_s is None, "it waits still"


@pytest.mark.parametrize(
    "other",
    [("registered", "pending", "for input"), ("ready", "pending", "for its parent"), ("registered", "ready", "it goes on")],
)
def test_what_differs_is_told_by_itself(other: tuple[str, str, str]) -> None:
    moves = history(("registered", "pending", "for its parent"), LOOK, other)
    assert folded(moves) == moves


@pytest.mark.django_db
def test_the_page_says_how_often_it_was_looked_at() -> None:
    task = submitted(parameters())
    epoch = TaskChange.objects.filter(task_id=task.id).latest("epoch").epoch
    for _ in range(4):
        for old, new, why in (("registered", "pending", "waits for its parent"), LOOK):
            epoch += 1
            TaskChange.objects.create(task_id=task.id, old=old, new=new, epoch=epoch, who="agent:x", why=why)
    seen = page("op", ("demo", "operator")).get(f"/tasks/{task.id}/").text
    assert seen.count("waits for its parent") == 1
    assert "looked at 3 times meanwhile" in seen
