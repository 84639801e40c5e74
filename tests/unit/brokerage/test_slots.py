"""How much room there is at the queues for further jobs."""

from __future__ import annotations

import numpy as np
import pytest

from brokerage.rules.decision.pipeline import Choice
from brokerage.rules.placement.room import QueueLoad
from brokerage.rules.placement.slots import JobGrants, chosen_queues, limit_of, total_room
from tests.unit.brokerage.grids import CONFIG, queues

MOVING = queues(storage="Q_DISK", assigned=500, activated=3, running=2)


@pytest.mark.parametrize(("missing", "waiting"), [(0, 3), (1, 503)])
def test_jobs_whose_input_moves_do_not_block_those_whose_input_is_there(missing: int, waiting: int) -> None:
    table = MOVING.with_columns(missing_files=np.array([missing]))
    (place,) = chosen_queues([Choice(0, "Q", 1.0, ())], table, limit_of("production", None, CONFIG), JobGrants(), None)
    assert (place.queued, place.room) == (waiting, 20 - waiting)


def test_there_may_be_room_until_the_input_is_known() -> None:
    assert total_room(MOVING, limit_of("production", None, CONFIG), JobGrants(), None) == 17


@pytest.mark.parametrize(("activity", "room"), [("production", 17), ("generic", 17), ("analysis", 37)])
def test_a_queue_of_analysis_is_full_when_it_is_overloaded(activity: str, room: int) -> None:
    (place,) = chosen_queues([Choice(0, "Q", 1.0, ())], MOVING, limit_of(activity, None, CONFIG), JobGrants(), None)
    assert place.room == room


def test_a_queue_has_no_more_room_than_its_slots_whatever_may_wait_for_one_share() -> None:
    limit, grants = limit_of("production", None, CONFIG), JobGrants({"Q": QueueLoad(slots=12, waiting={"MC": 7}, jobs=9)})
    (place,) = chosen_queues([Choice(0, "Q", 1.0, ())], MOVING, limit, grants, None)
    assert (place.room, place.untouched, total_room(MOVING, limit, grants, None)) == (5, False, 5)
    grants.add("other share", {"Q": 4})
    (place,) = chosen_queues([Choice(0, "Q", 1.0, ())], MOVING, limit, grants, "MC")
    assert (place.room, place.queued, total_room(MOVING, limit, grants, "MC")) == (1, 3, 1)
