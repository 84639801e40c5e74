"""The limit of a link in bytes a second, over all its copies together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BURST_S = 0.2
"""So much of its rate may pass at once after a pause."""
SLICE_S = 0.1
MB = 1e6


class Bandwidth:
    """What passes over a link; threads that would exceed its rate wait."""

    def __init__(self, mb_per_s: float | None) -> None:
        self.mb_per_s = mb_per_s
        self._lock = threading.Lock()
        self._free_at = 0.0

    def take(self, size: int, check: Callable[[], None]) -> None:
        """Wait until so many bytes may pass; `check` is called meanwhile and may raise."""
        if self.mb_per_s is None:
            return
        with self._lock:
            start = max(time.monotonic() - BURST_S, self._free_at)
            self._free_at = start + size / (self.mb_per_s * MB)
            due = self._free_at
        while (left := due - time.monotonic()) > 0:
            check()
            time.sleep(min(left, SLICE_S))
