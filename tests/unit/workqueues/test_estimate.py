"""The estimate of when a task may be done: none where it would say nothing, and its spread narrows with the jobs of an hour."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.task.estimate import LEAST_JOBS, Pace, estimate, why_none


def test_what_is_left_takes_as_long_as_it_takes_at_the_rate_of_the_last_hour() -> None:
    found = estimate(Pace(jobs=200, last_hour=100, files=400, files_to_come=600))
    assert found is not None
    assert (found.jobs_to_come, found.files_per_job, found.seconds) == (300, 2.0, 3 * 3600.0)
    assert (round(found.least_s), round(found.most_s)) == (round(3 * 3600 / 1.1), round(3 * 3600 / 0.9))


def test_a_task_that_began_ten_minutes_ago_goes_on_at_the_rate_of_these() -> None:
    found = estimate(Pace(jobs=40, last_hour=40, files=40, files_to_come=80, at_work_s=600))
    assert found is not None
    assert found.seconds == 1200


@pytest.mark.parametrize(
    ("pace", "why"),
    [
        (Pace(200, 100, 400, 0), "no input file is left"),
        (Pace(LEAST_JOBS - 1, 10, 10, 10), f"fewer than {LEAST_JOBS} jobs have finished"),
        (Pace(200, 0, 400, 10), "no job finished in the last hour"),
        (Pace(200, 10, 0, 10), "no input file is done yet"),
    ],
)
def test_where_it_would_say_nothing_it_says_why(pace: Pace, why: str) -> None:
    assert estimate(pace) is None
    assert why_none(pace) == why


@given(*(st.integers(1, 10**6),) * 4)
def test_an_estimate_lies_within_its_spread(jobs: int, last_hour: int, files: int, to_come: int) -> None:
    found = estimate(Pace(jobs + LEAST_JOBS, last_hour, files, to_come))
    assert found is not None
    assert 0 < found.least_s < found.seconds < found.most_s <= 4 * found.seconds
    more = estimate(Pace(jobs + LEAST_JOBS, last_hour * 4, files, to_come))
    assert more is not None
    assert more.most_s / more.seconds <= found.most_s / found.seconds
