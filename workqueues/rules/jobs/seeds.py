"""Which random seeds the next jobs get. Source: seed 001, "Random seed assignment"; facts on workflows 7.12.

A seed is a row of the task's seed dataset; a failed job's row is free again and goes to the next job, whichever that is. The
value that the payload sees is the row's number plus the task's offset.
"""

from __future__ import annotations

from collections.abc import Iterable


def choose_seeds(free: Iterable[int], largest: int, wanted: int) -> tuple[list[int], list[int]]:
    """Row numbers for `wanted` jobs: free ones to use again, lowest first, and new ones behind `largest` (0 if there is none
    yet).
    """
    again = sorted(free)[: max(wanted, 0)]
    missing = max(wanted, 0) - len(again)
    return again, list(range(largest + 1, largest + 1 + missing))


def seed_value(number: int, offset: int) -> int:
    """What `${RNDMSEED}` stands for."""
    return number + offset
