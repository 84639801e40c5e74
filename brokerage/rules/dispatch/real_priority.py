"""What the priority that a user gives a job weighs among that user's own (rows D2, D3; facts on matching a1)."""

from __future__ import annotations

from math import trunc

ONLY_WHEN_IDLE = 1e-5
"""The weight of priority 0 and below: such a job starts when hardly another one waits."""

BEFORE_ALL = 1e6
"""The weight of priority 10 and above: such a job is nearly always first (beside a thousand of weight 9: 199 times of 200)."""

HIGHEST = 10


def real_priority(user_priority: float) -> float:
    """The weight of a user's priority, of which only the whole part counts: 1 to 9 weigh themselves."""
    whole = trunc(user_priority)
    if whole <= 0:
        return ONLY_WHEN_IDLE
    return BEFORE_ALL if whole >= HIGHEST else float(whole)
