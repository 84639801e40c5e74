"""How long a file waits before its next try (decision D17): each failure doubles the pause, up to a longest one. Pure."""

from __future__ import annotations

from typing import NamedTuple

MOST_DOUBLINGS = 40


class RetryPause(NamedTuple):
    """Seconds after the first failure, and at most; 0: no pause."""

    first_s: float = 0.0
    longest_s: float = 0.0

    def after(self, n: int) -> float:
        """Seconds to wait after the n-th failure."""
        return min(self.first_s * 2 ** min(n - 1, MOST_DOUBLINGS), self.longest_s) if n > 0 else 0.0


NO_PAUSE = RetryPause()
