"""What shares used too much or too little of late, for which the order makes up (decision C4; issue of share adherence).

Who is served next is decided by what runs as it was last counted. Nobody tells of the jobs that ended since, so leaves whose jobs
are long always look smaller than they are beside leaves whose jobs are short; a job of many cores is more than its share is short
of; and what took the place of a share that found no fitting slot keeps it for as long as its jobs run. Each time the error is
small, and always to the same side: so it is remembered for a while, and counted in. Amounts in HS06.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

from workqueues.rules.shares.tree import NO_AMOUNTS, Amounts

MOST_COUNTED = 0.2
"""Part of what a leaf is entitled to by which it counts as too much or too little at most: large errors, as when a site starts,
mend themselves by the order, and are not paid back.
"""
LONGEST_S = 60.0
"""No count stands for a longer time than this, however long ago the one before it was."""


class Lately(NamedTuple):
    """What was remembered at the last count: leaf -> too much (below 0: too little). `since_s`: how long ago that was;
    `memory_s`: in so long it fades to a third; 0: nothing is remembered, and only what runs now counts.
    """

    ahead: Amounts = NO_AMOUNTS
    since_s: float = 0.0
    memory_s: float = 0.0

    def now(self, leaf: str, used: float, entitled: float) -> float:
        """What is remembered of a leaf from now on, which uses so much and is entitled to so much."""
        if self.memory_s <= 0:
            return 0.0
        fades = exp(-max(self.since_s, 0.0) / self.memory_s)
        weight = 1 - max(fades, exp(-LONGEST_S / self.memory_s))
        most = MOST_COUNTED * entitled
        return fades * self.ahead.get(leaf, 0.0) + weight * max(-most, min(used - entitled, most))


NOTHING_LATELY = Lately()
