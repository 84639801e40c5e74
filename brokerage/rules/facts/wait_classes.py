"""How long jobs waited before they began, in classes that can be added up; percentiles are read from these."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

BOUNDS_S = (10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800, 57_600, 86_400, 172_800, 345_600, 604_800)
"""Where one class ends and the next begins, s; a percentile is exact to its class."""
LONGEST_S = 2 * BOUNDS_S[-1]
"""What the last class is taken to reach to."""
WAITS = tuple(f"wait{i:02d}" for i in range(len(BOUNDS_S) + 1))
"""Name of each class among what jobs did."""


def wait_class(seconds: float) -> str:
    """The class of a wait; one of no time for clocks that go apart."""
    return WAITS[bisect_right(BOUNDS_S, seconds)]


def percentile(counts: Sequence[int], part: float) -> float | None:
    """So long, s, this part of the jobs waited at most, as if those of a class were spread evenly. `counts`: of each class. None:
    there was no job.
    """
    total = sum(counts)
    if not total:
        return None
    wanted, below = part * total, 0
    for i, n in enumerate(counts):
        if n and below + n >= wanted:
            first = BOUNDS_S[i - 1] if i else 0
            last = BOUNDS_S[i] if i < len(BOUNDS_S) else LONGEST_S
            return first + (last - first) * (wanted - below) / n
        below += n
    return float(LONGEST_S)
