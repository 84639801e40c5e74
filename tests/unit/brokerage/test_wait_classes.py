"""Percentiles of waits are in the class in which the wait of that place is."""

from __future__ import annotations

import random

from brokerage.rules.facts.wait_classes import BOUNDS_S, LONGEST_S, WAITS, percentile, wait_class


def test_a_wait_is_of_the_class_that_begins_at_or_before_it() -> None:
    assert [wait_class(s) for s in (-1, 0, 9.9, 10, 29, 30, 604_799, 604_800, 1e9)] == [
        "wait00", "wait00", "wait00", "wait01", "wait01", "wait02", "wait16", "wait17", "wait17",
    ]  # fmt: skip
    assert max(map(len, WAITS)) <= 16


def test_a_percentile_is_in_the_class_of_the_wait_at_its_place() -> None:
    dice = random.Random(1)
    for _ in range(200):
        waits = sorted(dice.choice([1, 100, 10_000]) * dice.random() for _ in range(dice.randrange(1, 60)))
        counts = [sum(wait_class(wait) == name for wait in waits) for name in WAITS]
        for part in (0.5, 0.9, 0.99):
            place = next(i for i in range(len(waits)) if i + 1 >= part * len(waits))
            found = percentile(counts, part)
            assert found is not None
            i = WAITS.index(wait_class(waits[place]))
            assert (BOUNDS_S[i - 1] if i else 0) <= found <= (BOUNDS_S[i] if i < len(BOUNDS_S) else LONGEST_S)


def test_of_no_job_nothing_is_said() -> None:
    assert percentile([0] * len(WAITS), 0.5) is None
