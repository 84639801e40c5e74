"""How much memory the next try gets after one that ran out of it."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.jobs.memory_ladder import MOST_MB, STEPS, asked_for, next_step, own_steps, raises_task


@pytest.mark.parametrize(
    ("used", "asked", "unit", "base", "cores", "step"),
    [
        (500, 800, "MB", 0, 1, 1000),
        (1000, 3000, "MB", 0, 1, 4000),
        (4100, 2000, "MB", 0, 1, 6000),
        (8200, 4000, "MB", 0, 1, 4000),
        (0, 2000, "MB", 0, 1, 3000),
        (20_000, 2000, "MBPerCore", 4000, 8, 3000),
        (24_001, 2000, "MBPerCoreFixed", 0, 8, 4000),
        (100, 8000, "MB", 0, 1, 8000),
        (nan, 2000, "MB", 0, 1, 3000),
        (inf, 2000, "MB", 0, 1, 3000),
        (-5, 2000, "MB", 0, 1, 3000),
        (1e12, 2000, "MB", 0, 1, 3000),
        (2500, 0, "MB", 0, 1, 3000),
    ],
)
def test_the_first_step_above_what_was_used_and_asked_for(
    used: float, asked: float, unit: str, base: float, cores: int, step: float
) -> None:
    assert next_step(used, asked, unit, base, cores) == step


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(0, 20_000), st.integers(0, 64))
def test_it_never_falls_and_is_a_step_or_what_it_was(used: float, asked: int, cores: int) -> None:
    step = next_step(used, asked, "MBPerCore", 0, cores)
    assert step == asked or (step in STEPS and step > asked)


@given(st.sampled_from(STEPS), st.integers(1, 64), st.integers(0, 8000), st.sampled_from(["MB", "MBPerCore"]))
def test_what_a_job_asked_for_is_told_from_the_memory_that_it_got(ram: int, cores: int, base: int, unit: str) -> None:
    got = 0.9 * (base + ram * (cores if unit == "MBPerCore" else 1))
    assert asked_for(got, 0.9, unit, base, cores) == ram


@pytest.mark.parametrize(
    ("failed", "jobs", "raised"), [(9, 9, False), (3, 10, True), (2, 10, False), (29, 100, False), (30, 100, True)]
)
def test_the_whole_task_asks_for_more_from_thirty_percent_of_ten_jobs_on(failed: int, jobs: int, raised: bool) -> None:
    assert raises_task(failed, jobs) is raised


@pytest.mark.parametrize(
    ("said", "used", "asked", "more"),
    [
        ((3000, 500, 4500), 0, 2000, 3000),
        ((3000, 500, 4500), 0, 3000, 3500),
        ((3000, 500, 4500), 3900, 3000, 4000),
        ((3000, 500, 4500), 0, 4500, 4500),
        ((3000, 500, 4500), 0, 5000, 5000),
        ((3000, 0, 0), 0, 2000, 3000),
        ((3000, 0, 0), 0, 3000, 3000),
        ((0, 700, 0), 0, 2000, 2100),
        ((0, 700, 2050), 0, 2000, 2050),
        ((3000, 500, 0), nan, 3000, 3500),
        ((0, 2**31 - 1, 0), 0, 2000, MOST_MB),
    ],
)
def test_a_task_that_says_its_own_steps_goes_by_them(said: tuple[int, int, int], used: float, asked: int, more: float) -> None:
    assert own_steps(*said)(used, asked, "MB", 0, 1) == more


def test_own_steps_of_a_task_that_counts_by_cores_are_by_cores() -> None:
    assert own_steps(1000, 100, 0)(16_000, 1000, "MBPerCore", 0, 8) == 2100
