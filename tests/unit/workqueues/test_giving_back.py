"""When a child gives an element back by itself, and how long it rests at the parent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.elements.giving_back import (
    ChildSites,
    StandingElement,
    is_given_up,
    rest_s,
    returns_in_a_row,
    sites_in_rest,
    why_given_back,
)
from workqueues.rules.jobs.retry_pause import RetryPause
from workqueues.states import TASK
from workqueues.states.elements import ELEMENT

STILL_S = 3 * 3600.0
PENDING = StandingElement("Running", "pending", serials_left=3, files_left=4, said="no queue passes")
IDLE = StandingElement("Running", "throttled", idle_s=STILL_S + 1, said="tried 10 times")
SITES = ChildSites({"A"}, {"B"})
WAITS = StandingElement("Acquired", idle_s=STILL_S + 1, sites=("ALPHA",))


@pytest.mark.parametrize(
    ("element", "why"),
    [
        (PENDING, "its lot of serial numbers is used up: 3 are left for jobs of 4 files"),
        (replace(PENDING, serials_left=4), ""),
        (replace(PENDING, serials_left=None), ""),
        (replace(PENDING, task_status="running"), ""),
        (replace(PENDING, live_jobs=True), ""),
        (replace(PENDING, paused=True), ""),
        (replace(PENDING, status="CancelRequested"), ""),
        (replace(PENDING, status="Done"), ""),
        (IDLE, "no job of it was made for over 3h, its task is throttled: tried 10 times"),
        (replace(IDLE, idle_s=STILL_S), ""),
        (replace(IDLE, task_status="ready", sites=("ALPHA", "BETA")), ""),
        (
            replace(IDLE, task_status="ready", sites=("BETA",), held=True, said=""),
            "no job of it was made for over 3h, its task is ready",
        ),
        (replace(IDLE, task_status="ready", sites=("ALPHA",), said=""), "no job of it was made for over 3h, its task is ready"),
        (replace(IDLE, live_jobs=True), ""),
        (replace(IDLE, paused=True), ""),
        (replace(IDLE, task_status="aborting"), ""),
        (replace(IDLE, task_status="done"), ""),
        (StandingElement("Running", "exhausted", said="x"), "its task is exhausted, and goes on only by hand: x"),
        (StandingElement("Running", "exhausted", live_jobs=True), ""),
        (
            StandingElement("Running", "ready", quarantined=True),
            "agents failed on its task too often, and it goes on only by hand",
        ),
        (WAITS, "it waits for over 3h, and no site takes work for it"),
        (replace(WAITS, sites=("ALPHA", "BETA")), ""),
        (replace(WAITS, idle_s=10.0), ""),
        (replace(WAITS, paused=True), ""),
        (replace(WAITS, status="Negotiating"), "its work could not be fetched for over 3h"),
    ],
)
def test_why_an_element_is_given_back(element: StandingElement, why: str) -> None:
    assert why_given_back(replace(element, limit_s=STILL_S), ChildSites({"BETA"}, {"BETA"})) == why


elements = st.builds(
    StandingElement,
    status=st.sampled_from(ELEMENT.course),
    task_status=st.sampled_from(["", *sorted(TASK.states)]),
    idle_s=st.floats(0, 2 * STILL_S),
    live_jobs=st.booleans(),
    paused=st.booleans(),
    quarantined=st.booleans(),
    serials_left=st.none() | st.integers(0, 5),
    files_left=st.integers(0, 5),
    sites=st.sets(st.sampled_from("ABC")).map(tuple),
    held=st.booleans(),
)


@given(elements, st.floats(1, STILL_S))
def test_what_progresses_or_ends_by_itself_is_kept_and_nothing_stands_for_ever(
    element: StandingElement, standstill_s: float
) -> None:
    why = why_given_back(replace(element, limit_s=standstill_s), SITES)
    if why:
        assert element.status in ELEMENT.returnable
        assert not (element.live_jobs or element.paused)
        assert element.task_status in ("", *TASK.accepting("abort"))
        assert why_given_back(replace(element, idle_s=element.idle_s + 1, limit_s=standstill_s), SITES), "it stays so"
    elif element.status in ELEMENT.returnable and not (element.live_jobs or element.paused):
        later = why_given_back(replace(element, idle_s=standstill_s + 1, limit_s=standstill_s), SITES)
        ends = element.task_status not in ("", *TASK.accepting("abort"))
        waits = not element.task_status and element.status == "Acquired" and "A" in element.sites
        waits |= element.task_status in TASK.generating and not element.held and "B" in element.sites
        assert bool(later) is not (ends or waits)


@pytest.mark.parametrize(
    ("before", "tried", "progress", "n"), [(0, True, False, 1), (0, False, False, 0), (4, True, True, 1), (4, True, False, 5)]
)
def test_how_often_in_a_row(before: int, tried: bool, progress: bool, n: int) -> None:
    assert returns_in_a_row(before, tried=tried, progress=progress) == n


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30), st.integers(1, 10))
def test_a_file_fails_only_after_so_many_tries_in_a_row_without_progress(tries: list[tuple[bool, bool]], most: int) -> None:
    n, futile = 0, 0
    for tried, progress in tries:
        n = returns_in_a_row(n, tried=tried, progress=progress)
        futile = 1 if progress else futile + tried
        assert is_given_up(n, most) is (futile >= most)
        assert 600 <= rest_s(n, RetryPause(600, 3600)) <= 3600
    assert not is_given_up(n, 0)


def test_first_others_may_have_it_then_nobody() -> None:
    assert sites_in_rest({"A", "B"}, {"B", "C"}, 1) == {"A"}
    assert sites_in_rest({"A", "B"}, {"B"}, 0) == {"A"}
    assert sites_in_rest({"A", "B"}, {"B"}, 2) == frozenset()
