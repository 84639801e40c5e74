"""How often a caller may ask, counted in the memory of this process: for verbs that come too often to ask a cache about.

Each process counts by itself, so that a caller whose requests reach several processes may ask as often at each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from broker_site.foundation.access.problems import Refused

MOST_CALLERS = 50_000
"""Callers that are remembered; of more, those are forgotten that have not asked for longest."""


@dataclass(slots=True)
class Pace:
    """Callers of one verb. Each has a stock of asks, at most `burst` and never less than one, that fills up again at a rate."""

    clock: Callable[[], float] = time.monotonic
    _stocks: dict[object, tuple[float, float]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def wait_s(self, caller: object, rate: float, burst: float) -> float:
        """0, and one ask fewer in stock; or how long until the caller may ask. A `rate` of 0 is no limit."""
        if rate <= 0:
            return 0.0
        burst = max(1.0, burst)
        with self._lock:
            now = self.clock()
            left, at = self._stocks.pop(caller, (burst, now))
            left = min(burst, left + (now - at) * rate)
            wait = 0.0 if left >= 1 else (1 - left) / rate
            self._stocks[caller] = (left if wait else left - 1, now)
            if len(self._stocks) > MOST_CALLERS:
                del self._stocks[next(iter(self._stocks))]
            return wait

    def give_back(self, caller: object) -> None:
        """The caller had a right to its last ask: one more in stock, up to `burst` at its next one."""
        with self._lock:
            if stock := self._stocks.get(caller):
                self._stocks[caller] = (stock[0] + 1, stock[1])

    def check(self, caller: object, rate: float, burst: float) -> None:
        """Refused(429) where the caller asks too often. Retry-After says whole seconds, Retry-After-Ms how long it is."""
        if wait := self.wait_s(caller, rate, burst):
            seconds, exact = str(max(1, math.ceil(wait))), str(math.ceil(wait * 1000))
            detail = f"At most {rate:g} of these a second; try again in {math.ceil(wait * 1000) / 1000:g} s."
            raise Refused(429, "Too many requests", detail, headers={"Retry-After": seconds, "Retry-After-Ms": exact})

    def forget(self) -> None:
        """Begin anew."""
        with self._lock:
            self._stocks.clear()
