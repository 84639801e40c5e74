"""Which of the chosen queues gets the next block of jobs (facts on the brokerage 8.1; decision B13).

A queue is drawn in proportion to its weight among those that still have room; what a queue is given counts as queued there and
lowers its weight, so that the blocks of one task spread as the weights say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random

from brokerage.rules.declare import Config


@dataclass(frozen=True, slots=True)
class Place:
    """One chosen queue: its weight, jobs queued there, and how many may be; `inf` = no cap."""

    name: str
    weight: float
    queued: int = 0
    cap: float = inf

    def filled(self, jobs: int) -> Place:
        """The place after it was given so many jobs: more queued, and a weight that is lower in proportion."""
        queued = self.queued + jobs
        return replace(self, queued=queued, weight=self.weight * (self.queued + 1) / (queued + 1))


def block_of(scouts: bool, config: Config) -> int:
    """How many jobs go to one queue before the next is drawn. `config`: component jobbroker."""
    return int(config["SCOUTS_PER_BLOCK" if scouts else "JOBS_PER_BLOCK"])


def draw(places: Sequence[Place], dice: Random, barred: str = "") -> Place | None:
    """A place with room, drawn in proportion to the weights; None when none has room.

    `barred` names a queue for which nothing could be made in the last round; it is passed over.
    """
    roomy = [place for place in places if place.queued < place.cap and place.name != barred and place.weight > 0]
    if not roomy:
        return None
    left = dice.random() * sum(place.weight for place in roomy)
    for place in roomy:
        left -= place.weight
        if left < 0:
            return place
    return roomy[-1]


def spread(places: Sequence[Place], jobs: int, block: int, dice: Random) -> list[tuple[str, int]]:
    """How a known number of jobs is laid out: (queue, jobs) in the order of drawing; fewer jobs than asked when all are full."""
    now = {place.name: place for place in places}
    blocks: list[tuple[str, int]] = []
    while jobs > 0 and (place := draw(list(now.values()), dice)) is not None:
        size = min(block, jobs)
        blocks.append((place.name, size))
        now[place.name] = place.filled(size)
        jobs -= size
    return blocks


def spread_idle_first(places: Sequence[Place], jobs: int, block: int, dice: Random) -> list[tuple[str, int]]:
    """Like `spread`, but queues where nothing waits get the first jobs, one each in random order.

    An idle queue starts at once and shows soon how it runs (facts on the brokerage 8.1, queues without weight).
    """
    idle = [place for place in places if place.queued == 0 and place.cap >= 1]
    dice.shuffle(idle)
    first = [(place.name, 1) for place in idle[:jobs]]
    given = {name for name, _ in first}
    rest = [place.filled(1) if place.name in given else place for place in places]
    return first + spread(rest, jobs - len(first), block, dice)
