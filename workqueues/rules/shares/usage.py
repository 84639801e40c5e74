"""Where each share or work queue stands: what it should have, has, wants and may have now (decisions C1, C3 to C5; row J2).

Amounts in HS06 (cores x HS06 per core). Not here: the percentages of work queues (`work_queue_shares`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add

from workqueues.rules.shares.catch_up import NOTHING_LATELY, Lately
from workqueues.rules.shares.tree import Node, entitlements, sums, targets, walk
from workqueues.rules.shares.tree import order as order_of
from workqueues.rules.work_queues.queue_shares import QueueShare, percentages


@dataclass(frozen=True, slots=True)
class Use:
    """What a unit has: running and queued, each in HS06, jobs and cores."""

    hs06_running: float = 0.0
    hs06_queued: float = 0.0
    jobs_running: int = 0
    jobs_queued: int = 0
    cores_running: int = 0
    cores_queued: int = 0

    def __add__(self, other: Use) -> Use:
        return Use(*map(add, self._values(), other._values()))

    def _values(self) -> tuple[float, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)


NOTHING = Use()


@dataclass(frozen=True, slots=True)
class UnitStanding:
    """One share or work queue: `percent` of all, `target` at that percentage of all that runs, `entitled` now, with others idle.

    `level` is its depth, 0 at the top. `place`: where a leaf stands in the order in which leaves are served, from 0 (first) to
    below 1; None for others. `above`: a leaf runs more than it is entitled to, on power that others have jobs waiting for.
    `ahead`: by how much it ran too much of late, below 0 too little.
    """

    name: str
    parent: str
    level: int
    value: float | None
    percent: float
    target: float
    entitled: float
    use: Use
    place: float | None = None
    above: bool = False
    ahead: float = 0.0


SLACK = 1e-9
"""Part of an amount that is lost in sums."""


def of_tree(tree: Sequence[Node], used: Mapping[str, Use], lately: Lately = NOTHING_LATELY) -> list[UnitStanding]:
    """Every node, parents before their children, by the use of the leaves now and lately."""
    running = {name: use.hs06_running for name, use in used.items()}
    demand = {name: use.hs06_running + use.hs06_queued for name, use in used.items()}
    whole = sums(tree, used, NOTHING)
    total = sum(whole[node.name].hs06_running for node in tree)
    percent, target, entitled = targets(tree, 100.0), targets(tree, total), entitlements(tree, total, demand)
    leaves = [leaf.name for node in tree for leaf in node.leaves()]
    ahead = sums(tree, {leaf: lately.now(leaf, running.get(leaf, 0.0), entitled[leaf]) for leaf in leaves}, 0.0)
    ordered = order_of(tree, running, ahead)
    places = {name: number / len(ordered) for number, name in enumerate(ordered)}
    above = {name for name in ordered if running.get(name, 0.0) > entitled[name] + SLACK * total}
    return [
        UnitStanding(
            node.name, parent, level, node.value, percent[node.name], target[node.name], entitled[node.name], whole[node.name],
            places.get(node.name), node.name in above, ahead[node.name],
        )
        for node, parent, level in walk(tree)
    ]  # fmt: skip


def of_queues(queues: Sequence[QueueShare], used: Mapping[str, Use], lately: Lately = NOTHING_LATELY) -> list[UnitStanding]:
    """Every work queue of a VO, partitions before their sub queues: a tree of the percentages that they may use now.

    Where no queue has a share, none is served before another and none is above what it is entitled to.
    """
    percent, value = percentages(queues), {queue.name: queue.share for queue in queues}
    below: dict[str, list[QueueShare]] = defaultdict(list)
    for queue in queues:
        below[queue.partition].append(queue)

    def nodes(inside: str) -> tuple[Node, ...]:
        return tuple(Node(q.name, percent[q.name], nodes(q.name) if q.is_partition else ()) for q in below[inside])

    standings = [replace(standing, value=value[standing.name]) for standing in of_tree(nodes(""), used, lately)]
    if any(value.values()):
        return standings
    return [replace(s, above=False, ahead=0.0, place=None if s.place is None else NO_TREE) for s in standings]


NO_TREE, NO_LEAF = 0.5, 1.0
"""Places of work without a share: in the middle where the VO has no shares, last where no leaf takes it."""
