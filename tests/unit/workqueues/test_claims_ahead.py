"""The order of a run in which tasks that rest are claimed beside those of lower priority."""

from __future__ import annotations

from datetime import UTC, datetime

from workqueues.ledger.claims_ahead import in_turn
from workqueues.models import Task


def task(id_: int, priority: int, share: str = "a", minute: int = 0) -> Task:
    changed = datetime(2026, 1, 1, 0, minute, tzinfo=UTC)
    return Task(id=id_, vo="v", gshare=share, current_priority=priority, modification_time=changed)


def test_each_comes_before_the_first_of_its_unit_that_has_a_lower_priority() -> None:
    claimed = [task(1, 500), task(2, 100), task(3, 700, "b"), task(4, 50, "b")]
    ahead = [task(5, 300, "a"), task(6, 300, "b", minute=1), task(7, 300, "b"), task(8, 900, "a")]
    assert [one.id for one in in_turn(claimed, ahead)] == [8, 1, 5, 2, 3, 7, 6, 4]
    assert [one.id for one in in_turn(claimed, [])] == [1, 2, 3, 4]
