"""What a pilot is offered, and in which order."""

from __future__ import annotations

from random import Random

import pytest

from brokerage.rules.dispatch.matching import Requirement, Resource, Waiting, order, suits

PILOT = Resource("Q", cores=4, memory_mb=8000, disk_mb=10_000, walltime_s=3600, vo="atlas")


@pytest.mark.parametrize(
    ("requirement", "skipped"),
    [
        (Requirement("Q", 4, 8000, 10_000, 3600, "atlas"), None),
        (Requirement("Q", 0, 0, 0, 0, "atlas"), None),
        (Requirement("R", 4, 8000, 10_000, 3600, "atlas"), "-queue"),
        (Requirement("Q", 5, 8000, 10_000, 3600, "atlas"), "-cores"),
        (Requirement("Q", 4, 8001, 10_000, 3600, "atlas"), "-memory"),
        (Requirement("Q", 4, 8000, 10_001, 3600, "atlas"), "-disk"),
        (Requirement("Q", 4, 8000, 10_000, 3601, "atlas"), "-walltime"),
        (Requirement("Q", 4, 8000, 10_000, 3600, "belle"), "-vo"),
    ],
)
def test_a_job_runs_only_where_everything_it_needs_is_left(requirement: Requirement, skipped: str | None) -> None:
    skip = suits(requirement, PILOT)
    assert (skip and skip.criterion) == skipped
    assert [waiting.id for waiting in order([Waiting(1, requirement, 500)], PILOT)] == ([1] if skipped is None else [])


def test_what_a_pilot_does_not_know_sets_no_condition() -> None:
    huge = Requirement("Q", 64, 999_999, 999_999, 999_999, "belle")
    assert suits(huge, Resource("Q", cores=0)) is None
    assert order([Waiting(1, huge, 500)], Resource("Q", cores=0))


def test_numbers_are_in_the_reason() -> None:
    skip = suits(Requirement("Q", memory_mb=9000, vo="atlas"), PILOT)
    assert skip is not None
    assert skip.reason == "a job needs 9000 MB of memory, the pilot has 8000"
    assert skip.numbers == {"need": 9000, "has": 8000}


def test_high_priority_first_then_those_that_run_least_then_the_oldest() -> None:
    need = Requirement("Q", vo="atlas")
    waiting = [Waiting(1, need, 500, 3), Waiting(2, need, 900, 9), Waiting(3, need, 500, 1), Waiting(4, need, 500, 1)]
    assert [found.id for found in order(waiting, PILOT)] == [2, 3, 4, 1]


def test_the_order_is_that_of_what_suits() -> None:
    dice = Random(3)
    waiting = [
        Waiting(
            i,
            Requirement(
                dice.choice("QR"), dice.randint(0, 6), dice.choice([0, 4000, 9000]), 0, 0, dice.choice(["atlas", "belle"])
            ),
            dice.randint(1, 9),
        )
        for i in range(300)
    ]
    assert sorted(found.id for found in order(waiting, PILOT)) == [
        one.id for one in waiting if suits(one.requirement, PILOT) is None
    ]
