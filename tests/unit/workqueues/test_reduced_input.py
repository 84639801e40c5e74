"""Less input after jobs that failed with too much of it: parts of what the task said at first, never more than now."""

from __future__ import annotations

import pytest

from workqueues.rules.jobs.reduced_input import parts, reduced, why_not


@pytest.mark.parametrize(("attempt_nr", "n"), [(1, 1), (2, 2), (3, 2), (4, 4), (6, 4), (7, None), (20, None)])
def test_how_small_a_part_is_grows_with_the_tries(attempt_nr: int, n: int | None) -> None:
    assert parts(attempt_nr) == n


def test_parts_are_taken_of_the_beginning() -> None:
    first = reduced("US=1", 9, 2)
    assert first == "US=1,RM=NG:0/MF:9,MF=4"
    assert reduced(first, 4, 3) == first
    assert reduced(first, 4, 4) == "US=1,RM=NG:0/MF:9,MF=2"
    assert reduced(first, 4, 9) == "US=1,RM=NG:0/MF:9,MF=1"
    later = reduced(first, 4, 9)
    assert reduced(later, 1, 2) == later, "a job that was made before gives nothing back"


def test_what_the_task_says_in_gb_gets_smaller_too() -> None:
    assert reduced("NG=9,MF=3", 3, 2) == "NG=4,MF=1,RM=NG:9/MF:3"


@pytest.mark.parametrize("rule", ["NF=2", "NE=10", "TE=5", "GB=4"])
def test_what_the_task_fixes_stays(rule: str) -> None:
    assert why_not(rule)
    assert reduced(rule, 9, 9) == rule


def test_a_rule_without_room_for_more_stays() -> None:
    full = ",".join(["US=1", *("AN=1,2,3,4,5,6,7,8,9" for _ in range(9))])
    assert reduced(full, 9, 9) == full
