"""Limits that sites advertise: never more jobs than both of them allow, and a site among those that suit the user's stations."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.dispatch.site_limits import (
    Advertisement,
    ExecutionSite,
    SiteState,
    accepts,
    advertised,
    candidates,
    choose,
    give,
    probability,
    room,
    time_fault,
    why_no_room,
)

MIN = 60.0


def ad(max_jobs: int | None, max_submitting: int | None, current: int | None, submitting: int | None) -> Advertisement:
    return Advertisement(
        max_jobs=max_jobs, max_submitting_jobs=max_submitting, current_jobs=current, current_submitting_jobs=submitting
    )


@pytest.mark.parametrize(
    ("limits", "counts", "idle", "matched", "cur_matches", "why"),
    [
        ((100, 10), (95, 3), 50, 5, 100, "(MaxJobs)"),
        ((100, 10), (50, 3), 50, 7, 57, "(MaxSubmittingJobs)"),
        ((100, 10), (50, 10), 50, 0, 50, "(MaxSubmittingJobs)"),
        ((100, 10), (100, 0), 50, 0, 100, "(MaxJobs)"),
        ((100, 10), (103, 0), 50, 0, 103, "(MaxJobs)"),
        ((100, 10), (50, 3), 4, 4, 54, ""),
        ((0, 10), (0, 0), 9, 0, 0, "(MaxJobs)"),
        ((1, 1), (0, 0), 9, 1, 1, "(MaxJobs)"),
        ((100, None), (0, 0), 5, 0, 0, "MaxSubmittingJobs, and without that nothing matches"),
        ((None, 10), (0, 0), 5, 0, 0, "MaxJobs, and without that nothing matches"),
    ],
)
def test_a_site_gets_what_both_of_its_limits_allow_in_one_period(
    limits: tuple[int, int], counts: tuple[int, int], idle: int, matched: int, cur_matches: int, why: str
) -> None:
    state, n = give(advertised(ad(*limits, *counts)), idle)
    assert (n, state.cur_matches, state.matched) == (matched, cur_matches, matched)
    told = why_no_room(state, 0, 15 * MIN)
    assert why in told
    assert bool(told) is (not accepts(state))


def test_the_story_of_five_minutes() -> None:
    state, n = give(advertised(ad(100, 10, 80, 0)), 50)
    assert n == 10
    assert state.cur_matches == 90
    assert give(state, 50)[1] == 0, "what ends or begins meanwhile is not seen before the next advertisement"
    for current, submitting, expected in ((87, 6, 4), (91, 0, 9), (100, 5, 0)):
        state, n = give(advertised(ad(100, 10, current, submitting)), 50)
        assert n == expected


def test_a_lost_advertisement_and_one_that_is_older_than_matches_raise_nothing() -> None:
    state, _ = give(advertised(ad(100, 10, 80, 0)), 50)
    assert give(state, 50)[1] == 0
    late = advertised(ad(100, 10, 80, 0), newer_matches=10)
    assert (late.cur_matches, give(late, 50)[1]) == (90, 0)


def test_counting_only_the_jobs_that_the_site_told_would_have_given_all_of_them() -> None:
    assert give(advertised(ad(100, 1000, 99, 0)), 50)[1] == 1


numbers = st.integers(0, 30)
ads = st.builds(ad, *[st.one_of(st.none(), numbers)] * 4)


@given(ads, st.lists(numbers, max_size=5))
def test_what_is_given_at_once_is_what_asking_before_each_match_gives(said: Advertisement, rounds: list[int]) -> None:
    at_once = one_by_one = advertised(said)
    for idle in rounds:
        at_once, n = give(at_once, idle)
        asked = 0
        while asked < idle and accepts(one_by_one):
            one_by_one = SiteState(said, one_by_one.matched + 1)
            asked += 1
        assert (n, at_once) == (asked, one_by_one)


@given(ads, numbers, numbers)
def test_no_limit_is_ever_passed_and_none_of_the_room_is_lost(said: Advertisement, newer: int, idle: int) -> None:
    before = advertised(said, newer)
    state, n = give(before, idle)
    assert n == min(idle, room(before))
    if n:
        assert said.max_jobs is not None
        assert said.max_submitting_jobs is not None
        assert said.current_submitting_jobs is not None
        assert state.cur_matches <= said.max_jobs
        assert state.matched + said.current_submitting_jobs <= said.max_submitting_jobs
    assert accepts(state) is (room(state) > 0)
    assert room(advertised(said, newer + 1)) <= room(before), "a match that the count did not see never raises the room"


@pytest.mark.parametrize(
    ("counted_at", "last", "fault"),
    [
        (1000.0, None, None),
        (0.0, None, None),
        (-1.0, None, "before 1970"),
        (-62135596800.0, 700.0, "later"),
        (1004.0, 700.0, None),
        (1006.0, 700.0, "in the future"),
        (700.0, 700.0, "of the same time as that of the last advertisement"),
        (699.99, 700.0, "less than 0.1 s later"),
        (699.5, 700.0, "0.5 s later"),
        (640.0, 700.0, "60 s later"),
    ],
)
def test_a_count_is_newer_than_the_last_and_not_of_the_future(counted_at: float, last: float | None, fault: str | None) -> None:
    told = time_fault(counted_at, last, now=1000.0, tolerance_s=5.0)
    assert (told is None) if fault is None else (told is not None and fault in told)


def test_an_old_advertisement_gives_no_room_and_that_is_the_reason_told() -> None:
    state = advertised(ad(100, 10, 0, 0))
    assert why_no_room(state, 15 * MIN, 15 * MIN) == ""
    assert why_no_room(state, 16 * MIN, 15 * MIN) == (
        "its last advertisement is 16 min old, and one older than 15 min gives no room"
    )


def site(name: str, *stations: str, current: int = 0) -> ExecutionSite:
    return ExecutionSite(name, frozenset(stations), advertised(ad(10, 5, current, 0)))


SITES = [
    site("X", "st1"),
    site("Y", "st1", "st2"),
    site("Full", "st1", current=10),
    site("Other", "st9"),
]


@pytest.mark.parametrize(
    ("stations", "names", "each"),
    [
        (["st1"], ["X", "Y"], 1 / 2),
        (["st2"], ["Y"], 1.0),
        (["st1", "st9"], ["Other", "X", "Y"], 1 / 3),
        (["st7"], [], None),
        ([], ["Other", "X", "Y"], 1 / 3),
    ],
)
def test_a_job_may_go_to_the_sites_that_advertise_one_of_its_stations_and_have_room(
    stations: list[str], names: list[str], each: float | None
) -> None:
    assert candidates(stations, SITES) == names
    assert probability(names) == each
    chosen = choose(names, Random(1))
    assert chosen in names if names else chosen is None


def test_each_of_the_sites_is_chosen_as_often_as_another() -> None:
    dice, n = Random(4), 100_000
    names = ["A", "B", "C", "D"]
    drawn = Counter(choose(names, dice) for _ in range(n))
    chi_square = sum((drawn[name] - n / 4) ** 2 / (n / 4) for name in names)
    assert chi_square < 16.27, f"three degrees of freedom, one in a thousand: {drawn}"
