"""Where units stand as this process serves them: as it was last counted, with what was handed out and what ended since."""

from __future__ import annotations

import time
from collections import deque

from brokerage.queries.share_use import running_now
from brokerage.rules.dispatch.waiting_list import Unit
from workqueues.queries.serving_order import counted_at, serving_order
from workqueues.rules.shares.serving import ServingOrder

MOST_SINCE = 10_000
"""Jobs handed out that are remembered until they are counted."""
RECOUNT_S, RECOUNT_AT_MOST = 2.0, 100
"""What runs is counted by this process too, so often at most, and for no more than such a part of the time: other processes hand
out jobs as well, and nobody tells of those that end.
"""


class ServingSince:
    """Where units stand as it was last counted, with what this process handed out since then."""

    def __init__(self) -> None:
        self.order = ServingOrder({}, {})
        self._at = -1.0
        self._recount_at = 0.0
        self._since: deque[tuple[float, Unit, float]] = deque(maxlen=MOST_SINCE)

    def read(self) -> None:
        """Read it anew, if it was counted anew, and what runs, if it is time."""
        at, age_s = counted_at()
        if at != self._at:
            self.order, self._at = serving_order(), at
            counted = time.monotonic() - age_s
            for when, unit, hs06 in self._since:
                if when > counted:
                    self.order.handed_out(*unit, hs06)
        began = time.monotonic()
        if began >= self._recount_at and self.order.matters:
            self.order.recount(running_now())
            ended = time.monotonic()
            self._recount_at = ended + max(RECOUNT_S, RECOUNT_AT_MOST * (ended - began))

    def handed_out(self, unit: Unit, hs06: float) -> None:
        """A job of the unit went to a pilot."""
        self._since.append((time.monotonic(), unit, hs06))
        self.order.handed_out(*unit, hs06)
