"""What an operator is told of two work queues that meet the same tasks."""

from __future__ import annotations

import pytest

from workqueues.rules.work_queues.lint import Definition, warnings


def told(earlier: str, later: str, **variables: str) -> str:
    """What is said of the later of two queues with these criteria."""
    queues = [
        Definition("first", 1, earlier, variables.get("first", "")),
        Definition("second", 2, later, variables.get("second", "")),
        Definition("rest", 9),
    ]
    return " ".join(warnings(queues).get("second", []))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (r"campaign LIKE '100\%'", r"campaign LIKE '100\%'"),
        (r"campaign LIKE '100\%'", "campaign = '100%'"),
        (r"workingGroup LIKE 'GP\_%'", r"workingGroup LIKE 'GP\_TOP\_%'"),
        ("processingType LIKE 'a%'", "processingType IN ('ab','ac')"),
        ("coreCount >= 1", "coreCount = 8"),
        ("", "coreCount = 8"),
    ],
)
def test_a_queue_that_an_earlier_one_leaves_nothing_to_is_not_reached(earlier: str, later: str) -> None:
    assert told(earlier, later) == "no task reaches it: first takes all that it would"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("processingType LIKE 's%'", "NOT (processingType = 'reco')"),
        ("processingType LIKE '%e%'", "NOT (processingType = 'reco')"),
        ("workingGroup LIKE 'GP%'", "workingGroup LIKE '%HIGGS'"),
        ("workingGroup LIKE '%HIGGS'", "workingGroup LIKE 'GP%'"),
        ("coreCount > 4", "coreCount > 1"),
    ],
)
def test_queues_that_both_would_take_a_task_are_told_with_an_example(earlier: str, later: str) -> None:
    assert told(earlier, later).startswith("first comes first for tasks like ")


def test_the_example_of_two_patterns_meets_both() -> None:
    assert told("workingGroup LIKE 'GP%'", "workingGroup LIKE '%HIGGS'").endswith("workingGroup=GPHIGGS")


def test_queues_that_never_meet_are_not_told() -> None:
    assert told("coreCount = 1", "coreCount > 1") == ""
    assert told(r"campaign LIKE '100\%'", "campaign = '1000'") == ""
