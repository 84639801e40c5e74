"""When a task that is nearly done is boosted, and how many jobs it still needs."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.task.boost import boost, class_of, jobs_left, user_boost

CONFIG = {"BOOST_PROGRESS": 95.0, "BOOST_JOBS": 100, "BOOST_PRIORITY": 900}


@pytest.mark.parametrize(
    ("percent", "left", "priority", "wanted"),
    [
        (95.0, 99, 500, (900, True)),
        (95.0, 99.9, 500, (900, True)),
        (95.0, 100, 500, (500, False)),
        (94.99, 1, 500, (500, False)),
        (99.0, 1, 950, (950, True)),
        (99.0, inf, 500, (500, False)),
        (100.0, 0, -5, (900, True)),
    ],
)
def test_the_boost(percent: float, left: float, priority: int, wanted: tuple[int, bool]) -> None:
    given = boost(percent, left, priority, CONFIG)
    assert (given.priority, given.express) == wanted


@given(st.floats(0, 100), st.floats(0, 1e6), st.integers(-10_000, 10_000))
def test_a_priority_is_never_lowered(percent: float, left: float, priority: int) -> None:
    assert boost(percent, left, priority, CONFIG).priority >= priority


@pytest.mark.parametrize(
    ("open_files", "jobs", "files", "left"),
    [(0, 0, 0, 0), (5, 0, 0, inf), (50, 10, 100, 5), (3, 10, 100, 1), (2, 100, 10, 20), (10, 4, 4, 10)],
)
def test_jobs_are_counted_by_what_the_latest_had(open_files: int, jobs: int, files: int, left: float) -> None:
    assert jobs_left(open_files, jobs, files) == left


CLASSES = {
    "USER_USAGE_THRESHOLD_A": 1000,
    "USER_USAGE_THRESHOLD_B": 10_000,
    "PROGRESS_TO_BOOST_A": 90.0,
    "PROGRESS_TO_BOOST_B": 95.0,
    "MAX_REM_JOBS_TO_BOOST_A": 500,
    "MAX_REM_JOBS_TO_BOOST_B": 200,
}


@pytest.mark.parametrize(
    ("slots", "percent", "left", "near"),
    [
        (0, 90.0, 500, True),
        (1000, 89.9, 500, False),
        (1000, 90.0, 501, False),
        (1001, 95.0, 200, True),
        (1001, 94.9, 200, False),
        (10_000, 95.0, 201, False),
        (10_001, 99.9, 1, False),
        (0, 99.9, inf, False),
    ],
)
def test_tasks_of_users_with_few_slots_are_boosted_sooner(slots: int, percent: float, left: float, near: bool) -> None:
    given = user_boost(percent, left, 950, class_of(slots, CLASSES), 1000)
    assert (given.priority, given.express) == ((1000, True) if near else (950, False))
    assert user_boost(percent, left, 1200, class_of(slots, CLASSES), 1000).priority == 1200
