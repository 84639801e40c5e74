"""Priorities of the jobs of users."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.placement.user_priority import OwnerStanding, bad_boosts, boosted_priority, job_priorities


def test_each_five_jobs_that_a_user_has_take_a_point_of_the_next_one() -> None:
    assert job_priorities(JobKind.NORMAL, 1000, 7, OwnerStanding(9)) == [998, 998, 997, 997, 997, 997, 997]
    assert job_priorities(JobKind.NORMAL, 500, 2, OwnerStanding(5000)) == [-500, -500]
    assert job_priorities(JobKind.NORMAL, 1000, 2, OwnerStanding(5000, per_point=0)) == [1000, 1000]


def test_scouts_urgent_tasks_and_production_keep_their_priority() -> None:
    assert job_priorities(JobKind.SCOUT, 1000, 2, OwnerStanding(500)) == [1001, 1001]
    assert job_priorities(JobKind.NORMAL, 1500, 1, OwnerStanding(500)) == [1500]
    assert job_priorities(JobKind.NORMAL, 1000, 1) == [1000]


def test_who_is_boosted_has_that_priority_however_many_jobs() -> None:
    assert job_priorities(JobKind.NORMAL, 1000, 2, OwnerStanding(500, boosted=2000)) == [2000, 2000]
    assert job_priorities(JobKind.SCOUT, 1000, 1, OwnerStanding(500, boosted=2000)) == [2001]


BOOSTS = (
    {"name": "ada", "type": "user", "prio": 2000, "expire": "20260131"},
    {"name": "HIGG", "type": "group", "prio": 3000, "expire": None},
)


@pytest.mark.parametrize(
    ("user", "group", "day", "priority"),
    [
        ("ada", "", date(2026, 1, 31), 2000),
        ("ada", "", date(2026, 2, 1), None),
        ("bob", "", date(2026, 1, 1), None),
        ("bob", "HIGG", date(2030, 1, 1), 3000),
        ("ada", "HIGG", date(2026, 1, 1), 3000),
        ("HIGG", "", date(2026, 1, 1), None),
    ],
)
def test_a_boost_is_of_a_user_or_a_group_and_ends(user: str, group: str, day: date, priority: int | None) -> None:
    assert boosted_priority(BOOSTS, user, group, day) == priority


@pytest.mark.parametrize(
    "value",
    [
        {"name": "ada"},
        ["ada"],
        [{"name": "ada", "type": "robot", "prio": 1, "expire": None}],
        [{"name": "ada", "type": "user", "prio": "1", "expire": None}],
        [{"name": "ada", "type": "user", "prio": 10**9, "expire": None}],
        [{"name": "ada", "type": "user", "prio": True}],
        [{"name": "ada", "type": "user", "prio": 1, "expire": "20260231"}],
        [{"name": "ada", "type": "user", "prio": 1, "until": None}],
    ],
)
def test_a_boost_that_is_none_is_refused(value: Any) -> None:
    assert "is expected" in (bad_boosts(value) or "")
    assert bad_boosts(list(BOOSTS)) is None
