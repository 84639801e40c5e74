"""A Redis that is there but silent costs one of many callers its patience, not each of them.

Messages may be lost; a commit that waits for one in vain keeps other pilots waiting. Not here: a Redis that is not there, which
says so at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import redis

REST_S = 1.0
"""So long nobody asks it again, once somebody got no answer."""


@dataclass(slots=True)
class Silence:
    """What a process knows of it."""

    clock: Callable[[], float] = time.monotonic
    _until: float = float("-inf")

    def lasts(self) -> bool:
        """Whether it was silent a moment ago. One caller is told no after that, and finds out for all."""
        now = self.clock()
        if now < self._until:
            return True
        if self._until > float("-inf"):
            self._until = now + REST_S
        return False

    def heard(self, error: BaseException | None = None) -> None:
        """It answered, or the caller got this error."""
        silent = isinstance(error, redis.TimeoutError | TimeoutError)
        self._until = self.clock() + REST_S if silent else float("-inf")


SILENCE = Silence()
