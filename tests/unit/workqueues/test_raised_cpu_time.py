"""The CPU time of an event by a job that ran out of time."""

from __future__ import annotations

import pytest

from workqueues.rules.jobs.raised_cpu_time import raised_cpu_time


def amount(*about: float) -> float:
    wall, base, power, cores, efficiency, events = about
    more = raised_cpu_time(wall, base, power, int(cores), efficiency, int(events))
    assert more is not None
    assert more.unit == ("mHS06sPerEvent" if more.hs06s < 10 else "HS06sPerEvent")
    return more.amount


def test_what_is_needed_follows_from_the_run_with_both_margins() -> None:
    assert amount(4200, 600, 10, 8, 90, 1000) == pytest.approx(3600 * 10 * 8 * 1.1 / 0.9 / 1000 * 1.5)


def test_less_than_ten_is_kept_in_thousandths() -> None:
    assert amount(1600, 600, 10, 1, 100, 10_000) == pytest.approx(1650)


@pytest.mark.parametrize(
    ("wall", "power", "efficiency", "events"),
    [
        (None, 10, 90, 10),
        (600, 10, 90, 10),
        (-5, 10, 90, 10),
        (1e9, 10, 90, 10),
        (4200, 0, 90, 10),
        (4200, 10, 0, 10),
        (4200, 10, 90, 0),
    ],
)
def test_what_is_not_known_says_nothing(wall: float | None, power: float, efficiency: float, events: int) -> None:
    assert raised_cpu_time(wall, 600, power, 1, efficiency, events) is None
