"""When what a user or group has is too much, and when it is little enough again."""

from __future__ import annotations

import pytest

from workqueues.rules.throttle.user_caps import Caps, Used, caps_of, on_jobs, on_tasks

CONFIG = {
    "CAP_RUNNING_USER_JOBS": 100,
    "CAP_RUNNING_USER_CORES": None,
    "CAP_RUNNING_GROUP_JOBS": 0,
    "CAP_RUNNING_GROUP_CORES": 800,
    "CAP_JOBS_RELEASE": 0.9,
    "CAP_TASKS_THROTTLE": 0.95,
    "CAP_TASKS_RELEASE": 0.85,
}


def test_users_and_groups_have_caps_of_their_own() -> None:
    assert (caps_of("ada", CONFIG), caps_of("group:HIGG", CONFIG)) == (Caps(100, 0), Caps(0, 800))


@pytest.mark.parametrize(
    ("jobs", "cores", "step"),
    [
        (0, 0, "go"),
        (89, 89, "go"),
        (90, 90, "stay"),
        (100, 100, "stay"),
        (101, 101, "hold"),
        (80, 401, "hold"),
        (80, 400, "stay"),
    ],
)
def test_jobs_are_held_back_above_the_cap_and_let_go_below_nine_tenths_of_it(jobs: int, cores: int, step: str) -> None:
    assert on_jobs("ada", Used(jobs, cores, 9999, 9999), Caps(100, 400), CONFIG).step == step


@pytest.mark.parametrize(
    ("running", "queued", "step"),
    [(0, 0, "go"), (84, 169, "go"), (85, 0, "stay"), (0, 170, "stay"), (95, 190, "stay"), (96, 0, "hold"), (0, 191, "hold")],
)
def test_tasks_are_throttled_from_95_percent_of_the_cap_on_or_of_twice_the_cap_that_waits(
    running: int, queued: int, step: str
) -> None:
    assert on_tasks("ada", Used(running, running, queued, queued), Caps(100), CONFIG).step == step


def test_without_a_cap_nobody_is_held_back() -> None:
    used = Used(10**6, 10**6, 10**6, 10**6)
    assert (on_jobs("ada", used, Caps(), CONFIG).step, on_tasks("ada", used, Caps(), CONFIG).step) == ("go", "go")


def test_the_reason_has_the_numbers() -> None:
    assert on_tasks("group:HIGG", Used(0, 0, 0, 2000), Caps(0, 800), CONFIG).why == (
        "the group HIGG has 2,000 waiting cores, 1,600 at most"
    )
    assert on_tasks("ada", Used(96), Caps(100), CONFIG).why == (
        "ada has 96 running jobs, 100 at most; beyond 95 % of that no more are made"
    ), "96 of 100 alone would be no reason"
