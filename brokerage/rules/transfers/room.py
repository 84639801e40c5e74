"""How many transfers may begin on each link and at each storage endpoint, and whose: express first, fair among shares. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LEAST_WEIGHT = 1e-6


class Way(NamedTuple):
    """From one site to another, as limits count."""

    source: str
    destination: str


class Waiting(NamedTuple):
    """A transfer that is due, with the source that it is planned from (empty: none is known)."""

    id: int
    way: Way
    express: bool
    share: str
    source: str
    destination: str


class Active(NamedTuple):
    """Transfers under way that have all this in common."""

    way: Way
    express: bool
    share: str
    source: str
    destination: str
    n: int


def link_limit(given: int | None, halved: bool, default: int) -> int:
    """How many may be under way on a link: what it is given, else the default; half of that while failures halve it, but one."""
    limit = default if given is None else given
    return min(limit, max(1, limit // 2)) if halved else limit


def plain_limit(limit: int, express_part: float) -> int:
    """How many of them may be such that are not express."""
    return limit - int(limit * express_part)


@dataclass(slots=True)
class Room:
    """What is left on links and at endpoints while transfers are picked.

    `limits`: of links that have one of their own; `express_part`: the part of a link's slots that only express ones take.
    """

    link_limit: int
    storage_limit: int
    express_part: float
    limits: Mapping[Way, int] = field(default_factory=dict)
    on_link: Counter[Way] = field(default_factory=Counter)
    plain_on_link: Counter[Way] = field(default_factory=Counter)
    by_share: Counter[tuple[Way, str]] = field(default_factory=Counter)
    out_of: Counter[str] = field(default_factory=Counter)
    into: Counter[str] = field(default_factory=Counter)

    def count(self, active: Iterable[Active]) -> None:
        """Take the room that those under way have."""
        for each in active:
            self._add(each.way, each.express, each.share, each.source, each.destination, each.n)

    def left(self, way: Way, express: bool = True) -> int:
        """How many more may begin on a link."""
        limit = self.limits.get(way, self.link_limit)
        free = limit - self.on_link[way]
        if not express:
            free = min(free, plain_limit(limit, self.express_part) - self.plain_on_link[way])
        return max(0, free)

    def fits(self, way: Way, express: bool, source: str, destination: str) -> bool:
        """Whether there is room for one more on the link and at both ends."""
        at_ends = self.into[destination] < self.storage_limit and (not source or self.out_of[source] < self.storage_limit)
        return at_ends and self.left(way, express) > 0

    def take(self, way: Way, express: bool, share: str, source: str, destination: str) -> None:
        """One begins."""
        self._add(way, express, share, source, destination, 1)

    def give_back(self, one: Waiting) -> None:
        """One that was taken does not begin, or not there."""
        self._add(one.way, one.express, one.share, one.source, one.destination, -1)

    def _add(self, way: Way, express: bool, share: str, source: str, destination: str, count: int) -> None:
        self.on_link[way] += count
        self.by_share[way, share] += count
        self.into[destination] += count
        if not express:
            self.plain_on_link[way] += count
        if source:
            self.out_of[source] += count


class Picked(NamedTuple):
    """Those that begin, and the heads of links of which none does, since an end of each has no room while the link has."""

    begin: Sequence[Waiting]
    hindered: Sequence[Waiting]


def pick(waiting: Sequence[Waiting], room: Room, weights: Mapping[str, float], most: int) -> Picked:
    """Choose from the heads of the links, which are in the order of priority and age within each share: at most `most`.

    `weights`: share -> what it is to have of all; one that is not known counts as the mean of those that are.
    """
    queues: dict[tuple[Way, bool], dict[str, list[Waiting]]] = {}
    for one in waiting:
        queues.setdefault((one.way, one.express), {}).setdefault(one.share, []).append(one)
    mean = sum(weights.values()) / len(weights) if weights else 1.0
    begin: list[Waiting] = []
    hindered: list[Waiting] = []
    for (way, express), shares in sorted(queues.items(), key=lambda item: (not item[0][1], room.on_link[item[0][0]])):
        heads, before, stuck = {share: iter(ones) for share, ones in shares.items()}, len(begin), []
        while heads and len(begin) < most and room.left(way, express):
            share = min(heads, key=lambda name: _load(room.by_share[way, name], weights.get(name, mean), name))
            head = next(heads[share], None)
            if head is None:
                del heads[share]
            elif room.fits(way, express, head.source, head.destination):
                room.take(way, express, head.share, head.source, head.destination)
                begin.append(head)
            else:
                stuck.append(head)
        hindered += stuck if len(begin) == before else []
    return Picked(begin, hindered)


def _load(active: int, weight: float, name: str) -> tuple[float, str]:
    return (active + 1) / max(weight, LEAST_WEIGHT), name
