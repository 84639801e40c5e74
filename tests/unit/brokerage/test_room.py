"""How many jobs a queue may get in one round, by its slots and the jobs of all shares."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from brokerage.rules.grid.measurements import NO_JOBS, Facts
from brokerage.rules.placement.room import NO_SHARE, UNKNOWN, QueueLoad, parts_of_shares, queue_loads
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


def measured(*there: dict[str, Any], pilot: dict[str, Any] | None, slots: tuple[dict[str, Any], ...] = ()) -> Facts:
    return Facts(None, jobs=there, pilots=() if pilot is None else (pilot,), slots=slots)


def load(
    *there: dict[str, Any], pilot: dict[str, Any] | None = None, slots: tuple[dict[str, Any], ...] = (), starts: int = 0
) -> QueueLoad:
    facts = measured(*there, pilot=pilot, slots=slots)
    return queue_loads(facts, NOW, {"Q": {"MC": starts}} if starts else {}).get("Q", UNKNOWN)


@pytest.mark.parametrize(
    ("there", "room"),
    [
        ((), 3),
        ((jobs("running", 4),), 7),
        ((jobs("sent", 1), jobs("starting", 1), jobs("running", 2)), 7),
        ((jobs("running", 4), jobs("activated", 5), jobs("activated", 1, "other share")), 1),
        ((jobs("defined", 2), jobs("throttled", 1)), 1),
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
    grants = JobGrants({"Q": QueueLoad(slots=10, waiting={"MC": 2}, jobs=2)})
    grants.add("MC", {"Q": 3, "R": 1})
    assert grants.room("Q", LIMIT, "MC") == 5
    assert grants.room("R", LIMIT, "MC") == 19


PERCENTS = {"MC": 70.0, "Physics": 20.0, "Tests": 10.0}
RUN = jobs("running", 100)


def rooms(*there: dict[str, Any], idle: int = 0, starts: dict[str, int] | None = None) -> dict[str, int]:
    """What each share may get at the queue."""
    facts = measured(*there, pilot=pilots(idle=idle))
    grants = JobGrants(queue_loads(facts, NOW, {"Q": starts or {}}), parts_of_shares(facts, PERCENTS))
    return {share: max(grants.room("Q", LIMIT, share), 0) for share in (*PERCENTS, "none")}


@pytest.mark.parametrize(
    ("there", "idle", "starts", "expected"),
    [
        pytest.param((), 100, {}, (100, 100, 100, 100), id="nobody: all"),
        pytest.param((RUN,), 0, {}, (100, 100, 100, 100), id="a share that had no job yet has no part yet"),
        pytest.param((RUN, jobs("activated", 60)), 0, {}, (40, 40, 40, 40), id="one share: all"),
        pytest.param((RUN, jobs("running", 1, "Tests"), jobs("activated", 6)), 0, {}, (83, 95, 13, 95), id="two: by percentage"),
        pytest.param((RUN, jobs("activated", 96, "Tests")), 0, {}, (4, 4, 0, 4), id="more than its part waits: none"),
        pytest.param((RUN, jobs("activated", 96, "Tests")), 0, {"Tests": 40}, (4, 4, 0, 4), id="nor for what began"),
        pytest.param((RUN, jobs("activated", 1, "Tests")), 0, {"Tests": 40}, (88, 99, 39, 99), id="as many as began may wait"),
        pytest.param((RUN, jobs("activated", 20, "Tests")), 30, {}, (110, 110, 10, 110), id="idle slots are for whoever comes"),
        pytest.param(
            (RUN, jobs("activated", 8, "Physics"), jobs("activated", 2, "Tests")),
            0,
            {},
            (70, 12, 8, 90),
            id="three: by percentage",
        ),
    ],
)
def test_beside_other_shares_each_has_a_part_of_the_room_by_its_percentage(
    there: Any, idle: int, starts: dict[str, int], expected: tuple[int, ...]
) -> None:
    assert tuple(rooms(*there, idle=idle, starts=starts).values()) == expected


def test_a_share_that_is_about_to_get_jobs_keeps_its_part_free_from_the_first_one() -> None:
    """Else the task that comes first fills all that may wait, and the others have nothing there when their turn comes."""
    facts = measured(RUN, jobs("activated", 20), pilot=pilots())
    wanting = parts_of_shares(facts, PERCENTS, ["Tests", "none"])
    assert wanting == {"MC": 70 / 80, "Tests": 10 / 80}
    grants = JobGrants(queue_loads(facts, NOW), wanting)
    assert {share: grants.room("Q", LIMIT, share) for share in ("MC", "Tests")} == {"MC": 68, "Tests": 13}


def test_a_vo_that_no_shares_drive_counts_as_much_as_a_tree() -> None:
    """Else the shares of the others fill what may wait at a queue, and it gets no jobs."""
    facts = measured(RUN, pilot=pilots())
    expected = {"MC": 70 / 180, "Tests": 10 / 180, NO_SHARE: 100 / 180}
    assert parts_of_shares(facts, PERCENTS, ["MC", "Tests"], 1) == pytest.approx(expected)
    assert parts_of_shares(facts, {}, [""], 1) == {}


def test_idle_slots_are_divided_before_they_are_for_whoever_comes_first() -> None:
    """Of those that have a turn; a share that has none in this round, or had its turn, keeps nothing from the others."""
    facts = measured(pilot=pilots(idle=100))
    grants = JobGrants(queue_loads(facts, NOW), parts_of_shares(facts, PERCENTS, PERCENTS), ["Physics", "MC"])
    assert {share: grants.room("Q", LIMIT, share) for share in PERCENTS} == {"MC": 80, "Physics": 30, "Tests": 10}
    grants.add("Physics", {"Q": 30})
    grants.had_turn("Physics")
    assert {share: grants.room("Q", LIMIT, share) for share in PERCENTS} == {"MC": 70, "Physics": 0, "Tests": 10}
    assert grants.kept
    grants.had_turn("MC")
    assert {share: grants.room("Q", LIMIT, share) for share in PERCENTS} == dict.fromkeys(PERCENTS, 70)


def test_what_began_of_a_share_lets_no_more_of_it_wait_while_others_have_their_turn_to_come() -> None:
    """A share that filled all slots while it was alone does not fill what may wait there too."""
    facts = measured(RUN, pilot=pilots())
    loads, parts = queue_loads(facts, NOW, {"Q": {"MC": 25, "Tests": 25}}), parts_of_shares(facts, PERCENTS, PERCENTS)
    grants = JobGrants(loads, parts, PERCENTS)
    assert [grants.room("Q", LIMIT, share) for share in PERCENTS] == [70, 20, 10]
    assert not grants.kept, "no slot idles"
    for share in ("MC", "Physics"):
        grants.had_turn(share)
    assert grants.room("Q", LIMIT, "Tests") == 25


def test_nothing_is_kept_for_shares_that_have_their_part_already() -> None:
    waiting = [jobs("activated", 70), jobs("activated", 20, "Physics"), jobs("activated", 5, "Tests")]
    facts = measured(RUN, *waiting, pilot=pilots())
    loads, parts = queue_loads(facts, NOW), parts_of_shares(facts, PERCENTS, PERCENTS)
    grants = JobGrants(loads, parts, PERCENTS)
    assert [grants.room("Q", LIMIT, share) for share in PERCENTS] == [
        JobGrants(loads, parts).room("Q", LIMIT, s) for s in PERCENTS
    ]
    assert not grants.kept


@pytest.mark.parametrize("percent", range(1, 100))
def test_so_many_percent_of_a_hundred_are_so_many(percent: int) -> None:
    assert QueueLoad(slots=100).room_of_share("MC", LIMIT, percent / 100) == percent


def test_a_share_whose_jobs_fill_the_room_leaves_it_to_a_larger_one_by_and_by() -> None:
    """Each job that begins makes room, and that is for the larger share until it has its part of what waits."""
    waiting = {"MC": 0, "Tests": 100}
    while (room := rooms(RUN, *(jobs("activated", n, share) for share, n in waiting.items())))["Tests"] == 0:
        waiting["MC"] += room["MC"]
        waiting["Tests"] -= 1
    assert waiting == {"MC": 87, "Tests": 12}


def test_a_queue_is_untouched_while_no_job_is_there_in_any_state() -> None:
    for status in ("merging", "holding", "pending", "activated", "running"):
        assert load(jobs(status, 1)).jobs == 1
    assert load(jobs("finished", 1)).jobs == 0
    grants = JobGrants({"Q": QueueLoad(jobs=1)})
    assert [grants.untouched(name) for name in "QR"] == [False, True]
    grants.add("MC", {"R": 1})
    assert not grants.untouched("R")


def test_misfits_take_no_room_from_jobs_that_fit_an_idle_slot() -> None:
    beside = QueueLoad(slots=10, waiting={"MC": 9, "DATA": 3}, jobs=12, misfits={"MC": 7, "DATA": 3})
    grants = JobGrants({"Q": beside, "R": QueueLoad(slots=1)})
    assert (grants.room("Q", 5, "MC"), grants.misfits("Q", "MC"), grants.misfits("Q", None)) == (-2, 7, 10)
    with grants.leaving_misfits_aside(["Q"]):
        assert (grants.room("Q", 5, "MC"), grants.misfits("Q", "MC"), grants.any_misfits()) == (8, 0, False)
        grants.add("MC", {"Q": 3})
        assert grants.room("Q", 5, "MC") == 5
    assert (grants.room("Q", 5, "MC"), grants.any_misfits()) == (-5, True), "what was given since counts in any case"


def test_misfits_wait_at_their_queue_though_they_are_not_among_its_jobs() -> None:
    facts = replace(measured(jobs("activated", 2), pilot=pilots(3)), misfits=({"queue": "Q", "share": "MC", "n": 4},))
    there = queue_loads(facts, NOW)["Q"]
    assert (there.waiting, there.misfits, there.jobs, there.idle()) == ({"MC": 6}, {"MC": 4}, 6, -3)
    assert there.without_misfits().idle() == 1
