"""A task whose inputs are tried again and again makes no jobs for a while, longer each time. Source: seed 001, throttled."""

from __future__ import annotations

EVERY = 5
"""Tries of one file after which a task rests."""
BASE_MIN = 120
CAUSE = "attempts"
"""The cause of such a task."""


def rest_min(max_attempt: int, times: int) -> int:
    """Minutes for which a task makes no jobs, 0 = none, by the tries of the file that was tried most among those not ended.

    `times`: how many multiples of EVERY it was throttled for already. Source: seed 001, status throttled: 120 x int(max / 5)^2
    minutes at each multiple of 5 (row J24); decision D6.
    """
    multiple, rest = divmod(max_attempt, EVERY)
    return BASE_MIN * multiple**2 if multiple > times and not rest else 0
