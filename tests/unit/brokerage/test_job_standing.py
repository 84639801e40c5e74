"""Where a waiting job stands at a computing queue."""

from __future__ import annotations

import pytest

from brokerage.rules.dispatch.job_standing import WaitingTurn, place_at
from brokerage.rules.dispatch.waiting_list import Unit

MC, USER, OTHERS = Unit("demo", "MC"), Unit("demo", "User"), Unit("other")
TURNS = [
    WaitingTurn(1, OTHERS, 0.0, 1000, 1),
    WaitingTurn(2, MC, 0.0, 500, 7),
    WaitingTurn(3, USER, 0.5, 900, 5),
    WaitingTurn(4, USER, 0.5, 900, 9),
]


@pytest.mark.parametrize(("task_queue", "ahead", "share", "turn"), [(2, 0, "MC", 1), (3, 1, "User", 2), (4, 2, "User", 2)])
def test_shares_come_first_then_priority_then_age(task_queue: int, ahead: int, share: str, turn: int) -> None:
    place = place_at("Q", "panda", False, TURNS, task_queue)
    assert place is not None
    assert (place.ahead, place.share, place.share_place) == (ahead, share, turn)


def test_only_task_queues_of_the_same_vo_go_before_since_vos_take_turns() -> None:
    place = place_at("Q", "panda", False, TURNS, 2)
    assert place is not None
    assert (place.task_queues, place.ahead, place.shares, place.other_vos) == (3, 0, 2, 1)


def test_a_vo_without_shares_has_turns_by_work_queues_which_are_told_by_name() -> None:
    place = place_at("Q", "panda", False, [WaitingTurn(5, Unit("demo", "", 1), 0.0, 500, 3)], 5, work_queue="default")
    assert place is not None
    assert (place.share, place.share_place, place.shares) == ("work queue default", 1, 1)


def test_chance_has_no_order_and_who_has_no_job_there_no_place() -> None:
    place = place_at("Q", "dirac", True, TURNS, 3)
    assert place is not None
    assert place.ahead is None
    assert place_at("Q", "panda", False, TURNS, 99) is None
