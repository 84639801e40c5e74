"""How long a transfer rests before its next attempt, and how long an attempt may be silent. Pure."""

from __future__ import annotations

from uuid import UUID

JITTER = 0.2
"""By this part the rest is longer or shorter, so that what failed together does not come back together."""
MB = 1e6
_STEPS = 10_000


def backoff_s(attempt: int, key: UUID | None, first_s: float, longest_s: float) -> float:
    """The rest after an attempt, the first of which has the number 1: twice as long each time. The key is the dice."""
    dice = (key.int % _STEPS) / (_STEPS - 1) if key else 0.5
    return min(longest_s, first_s * 2.0 ** min(max(attempt, 1) - 1, 60) * (1 - JITTER + 2 * JITTER * dice))


def silent_s(size: int, first_s: float, mb_per_s: float, longest_s: float) -> float:
    """How long an attempt for so many bytes may take before it is given up."""
    return min(longest_s, first_s + size / (mb_per_s * MB))
