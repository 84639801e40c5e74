"""What each share of a tree used over time, from the begins and ends of its jobs, as lines and as a table. Amounts in HS06."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from workqueues.rules.shares.tree import Node, sums, targets, walk

TOLERANCE = 0.05
"""Part of its target by which a share may miss it, or one slot where that is more."""
PARTS = 3


class Held(NamedTuple):
    """A job that held a slot: of which leaf, how much, and from when to when, s since the beginning."""

    leaf: str
    hs06: float
    begin: float
    end: float

    def within(self, begin: float, end: float) -> float:
        """Seconds of a span in which it held the slot."""
        return max(0.0, min(self.end, end) - max(self.begin, begin))


class ShareLine(NamedTuple):
    """One share over a span: what it used on the average, its target (that part of all that was used), and the size of a slot.

    `starts`: of the jobs of its leaves, in each third of the run.
    """

    name: str
    level: int
    percent: float
    target: float
    used: float
    slot: float
    starts: tuple[int, ...]

    @property
    def off(self) -> float:
        """By which part it misses its target."""
        return self.used / self.target - 1 if self.target else 0.0

    @property
    def allowed(self) -> float:
        """By how much it may miss it."""
        return max(TOLERANCE * self.target, self.slot)

    def holds(self) -> bool:
        """Whether it is near enough to its target: within the tolerance, or one slot."""
        return abs(self.used - self.target) <= self.allowed


def mean_use(jobs: Iterable[Held], begin: float, end: float) -> dict[str, float]:
    """Leaf -> HS06 that it used on the average of a span."""
    used: dict[str, float] = {}
    for job in jobs:
        used[job.leaf] = used.get(job.leaf, 0.0) + job.hs06 * job.within(begin, end) / (end - begin)
    return used


def lines(tree: Sequence[Node], jobs: Sequence[Held], seconds: float) -> list[ShareLine]:
    """Every share, parents before their children, over the last two thirds of a run of so many seconds."""
    used = mean_use(jobs, seconds / PARTS, seconds)
    whole = sums(tree, used, 0.0)
    percent, target = targets(tree, 100.0), targets(tree, sum(whole[node.name] for node in tree))
    starts: dict[str, list[int]] = {leaf.name: [0] * PARTS for node in tree for leaf in node.leaves()}
    slots: dict[str, float] = {}
    for job in jobs:
        if 0 <= job.begin < seconds:
            starts[job.leaf][int(job.begin / seconds * PARTS)] += 1
        slots[job.leaf] = max(slots.get(job.leaf, 0.0), job.hs06)
    found = []
    for node, _, level in walk(tree):
        leaves = [leaf.name for leaf in node.leaves()]
        begun = tuple(sum(starts[leaf][part] for leaf in leaves) for part in range(PARTS))
        slot = max(slots.get(leaf, 0.0) for leaf in leaves)
        found.append(ShareLine(node.name, level, percent[node.name], target[node.name], whole[node.name], slot, begun))
    return found


def table(found: Iterable[ShareLine]) -> str:
    """The lines as text."""
    head = f"{'share':<16}{'% of all':>9}{'target':>9}{'used':>9}{'off':>8}{'allowed':>9}  starts by third"
    return "\n".join(
        [
            head,
            *(
                f"{'  ' * line.level + line.name:<16}{line.percent:>9.2f}{line.target:>9.1f}{line.used:>9.1f}{line.off:>8.1%}"
                f"{line.allowed / line.target:>9.1%}  {' '.join(map(str, line.starts))}{'' if line.holds() else '  MISSED'}"
                for line in found
            ),
        ]
    )
