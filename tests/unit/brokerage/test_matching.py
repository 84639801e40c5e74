"""What a pilot is offered, and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.dispatch.requirement import Requirement, Resource, WaitingQueue, fitting, rank
from tests.oracles.matching import suits

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
    assert [waiting.id for waiting in fitting([WaitingQueue(1, requirement, 500)], PILOT)] == ([1] if skipped is None else [])


def test_what_a_pilot_does_not_know_sets_no_condition() -> None:
    huge = Requirement("Q", 64, 999_999, 999_999, 999_999, "belle")
    assert suits(huge, Resource("Q", cores=0)) is None
    assert list(fitting([WaitingQueue(1, huge, 500)], Resource("Q", cores=0)))


def test_numbers_are_in_the_reason() -> None:
    skip = suits(Requirement("Q", memory_mb=9000, vo="atlas"), PILOT)
    assert skip is not None
    assert skip.reason == "a job needs 9000 MB of memory, the pilot has 8000"
    assert skip.numbers == {"need": 9000, "has": 8000}


def test_the_share_comes_first_then_the_priority_then_the_oldest() -> None:
    need = Requirement("Q", vo="atlas")
    waiting = [
        WaitingQueue(1, need, 500, 2.0, job_id=72),
        WaitingQueue(2, need, 400, 1.0, job_id=74),
        WaitingQueue(3, need, 900, 2.0, job_id=73),
        WaitingQueue(4, need, 500, 2.0, job_id=71),
    ]
    assert [one.id for one in sorted(waiting, key=rank)] == [2, 3, 4, 1]


SIZES = st.sampled_from([0, 1, 3999, 4000, 4001, 10**9])
VOS = st.sampled_from(["", "atlas", "belle"])
needs = st.builds(Requirement, st.sampled_from("QR"), SIZES, SIZES, SIZES, SIZES, VOS)
pilots = st.builds(Resource, st.sampled_from("QR"), SIZES, SIZES, SIZES, SIZES, VOS)


@given(st.lists(needs, max_size=12), pilots)
def test_a_pilot_is_offered_just_the_work_of_which_nothing_says_that_it_does_not_suit(
    requirements: list[Requirement], pilot: Resource
) -> None:
    waiting = [WaitingQueue(i, requirement, 1) for i, requirement in enumerate(requirements)]
    assert list(fitting(waiting, pilot)) == [one for one in waiting if suits(one.requirement, pilot) is None]
