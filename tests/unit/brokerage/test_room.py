"""How many jobs a queue may get in one round, by its slots and the jobs of all shares."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from brokerage.rules.grid.measurements import NO_JOBS, Facts
from brokerage.rules.placement.room import UNKNOWN, QueueLoad, queue_loads
from brokerage.rules.placement.slots import JobGrants

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
LIMIT = 20


def jobs(status: str, n: int, share: str = "MC") -> dict[str, Any]:
    return {**NO_JOBS, "queue": "Q", "status": status, "share": share, "n": n}


def pilots(idle: int = 0, *, lately: bool = True) -> dict[str, Any]:
    seen = {"requests_3h": 1, "last_start": None, "waiting_since": None}
    return {"queue": "Q", "idle": idle, "asked_lately": lately, **seen}


def declared(n: int, expires: datetime | None = None) -> dict[str, Any]:
    return {"queue": "Q", "share": "", "resource_type": "", "n": n, "expires": expires}


def load(
    *there: dict[str, Any], pilot: dict[str, Any] | None = None, slots: tuple[dict[str, Any], ...] = (), starts: int = 0
) -> QueueLoad:
    facts = Facts(None, jobs=there, pilots=() if pilot is None else (pilot,), slots=slots)
    return queue_loads(facts, NOW, {"Q": starts} if starts else {}).get("Q", UNKNOWN)


@pytest.mark.parametrize(
    ("there", "room"),
    [
        ((), 3),
        ((jobs("running", 4),), 7),
        ((jobs("sent", 1), jobs("starting", 1), jobs("running", 2)), 7),
        ((jobs("running", 4), jobs("activated", 5), jobs("activated", 1, "other share")), 1),
        ((jobs("defined", 2), jobs("throttled", 1)), 0),
        ((jobs("holding", 9), jobs("transferring", 9), jobs("finished", 9)), 3),
    ],
)
def test_the_room_is_the_slots_that_run_or_idle_less_what_waits_whoever_it_is_for(there: Any, room: int) -> None:
    assert load(*there, pilot=pilots(idle=3)).room(LIMIT) == room


def test_jobs_whose_input_moves_take_room_from_those_whose_input_moves_too() -> None:
    moving = load(jobs("assigned", 4), pilot=pilots(idle=5))
    assert (moving.room(LIMIT), moving.room(LIMIT, local=False)) == (5, 1)


def test_twice_the_starts_of_two_rounds_may_wait_where_that_is_more_than_the_slots() -> None:
    assert load(jobs("running", 2), pilot=pilots(), starts=15).room(LIMIT) == 30
    assert load(jobs("running", 2), jobs("activated", 29), pilot=pilots(), starts=15).room(LIMIT) == 1


def test_a_pilot_between_two_jobs_is_a_slot() -> None:
    assert load(pilot=pilots()).room(LIMIT) == 1


def test_where_nothing_is_known_of_slots_jobs_may_wait_for_pilots_on_demand() -> None:
    assert load().room(LIMIT) == 20
    assert load(jobs("activated", 18), pilot=pilots(lately=False)).room(LIMIT) == 2


def test_declared_slots_count_until_they_expire_and_where_they_are_more() -> None:
    assert load(slots=(declared(30), declared(10))).room(LIMIT) == 40
    assert load(slots=(declared(30, NOW - timedelta(seconds=1)),)).room(LIMIT) == 20
    assert load(jobs("running", 50), slots=(declared(30),)).room(LIMIT) == 50
    assert load(slots=(declared(0),)).room(LIMIT) == 20  # as many as are starting: no number


def test_what_a_run_gave_takes_room_whoever_it_was_for() -> None:
    grants = JobGrants({"Q": QueueLoad(slots=10, waiting=2, jobs=2)})
    grants.add("MC", {"Q": 3, "R": 1})
    assert grants.room("Q", LIMIT) == 5
    assert grants.room("R", LIMIT) == 19


def test_a_queue_is_untouched_while_no_job_is_there_in_any_state() -> None:
    for status in ("merging", "holding", "pending", "activated", "running"):
        assert load(jobs(status, 1)).jobs == 1
    assert load(jobs("finished", 1)).jobs == 0
    grants = JobGrants({"Q": QueueLoad(jobs=1)})
    assert [grants.untouched(name) for name in "QR"] == [False, True]
    grants.add("MC", {"R": 1})
    assert not grants.untouched("R")
