"""Classes of CPU time: jobs of nearly equal length wait together (row D1; seed 002; decision H5). Seconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import ceil

from broker_site.foundation.outside_data import LARGEST

DOCUMENT = (500, 5000, 50_000, 300_000)
"""The four classes of seed 002, by their upper limits."""

STEP = 1.25
"""Where CPU times are compared exactly, each class of the ladder is so much longer than the one before it."""
FIRST_S = 60
LONGEST_S = 2**31 - 1


def classes(limits: Sequence[int] | None = None) -> tuple[int, ...]:
    """The classes by configured upper limits; those of the document where none are given or they do not rise strictly from 0.

    Source: facts on matching a1.
    """
    given = tuple(limits or ())
    rising = all(low < high for low, high in zip((0, *given), given, strict=False))
    return given if given and rising else DOCUMENT


def cpu_class(cpu_time_s: float, limits: Sequence[int] = DOCUMENT) -> int:
    """The class that a job of this CPU time belongs to: the next limit upwards, beyond the last one the last."""
    return limits[min(bisect_left(limits, cpu_time_s), len(limits) - 1)]


def _ladder() -> tuple[int, ...]:
    steps = [FIRST_S]
    while steps[-1] < LONGEST_S:
        steps.append(min(ceil(steps[-1] * STEP), LONGEST_S))
    return tuple(steps)


LADDER = _ladder()


def cpu_time_of(walltime_s: int, cores: int) -> int:
    """CPU time of a job of this walltime, s; thousands of cores for weeks have the most that a pilot can say it offers."""
    return min(walltime_s * max(cores, 1), LARGEST)


def on_ladder(time_s: float, longest_s: float = 0) -> int:
    """The step of the ladder that a time belongs to, at most the longest that its queue allows (0: no limit); 0 stays 0.

    A time that is longer than that stays as it is.
    """
    if time_s <= 0:
        return 0
    step = cpu_class(time_s, LADDER)
    return max(int(min(step, longest_s)), ceil(time_s)) if longest_s else step
