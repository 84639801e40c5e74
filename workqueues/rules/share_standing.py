"""Where each share stands: what it should have, has, wants and may have now (decisions C1, C4, C5; row J2).

Amounts in HS06 (cores x HS06 per core). Not here: the percentages of work queues (`work_queue_shares`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add

from workqueues.rules.share_tree import Node, entitlements, sums, targets, walk
from workqueues.rules.share_tree import order as order_of


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
class Standing:
    """One share: `percent` of all, `target` at that percentage of all that runs, `entitled` now, with others idle.

    `level` is its depth, 0 at the top. `place`: where a leaf stands in the order in which leaves are served, from 0 (first) to
    below 1; None for others.
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


def of_tree(tree: Sequence[Node], used: Mapping[str, Use]) -> list[Standing]:
    """Every node, parents before their children, by the use of the leaves."""
    running = {name: use.hs06_running for name, use in used.items()}
    demand = {name: use.hs06_running + use.hs06_queued for name, use in used.items()}
    total = sum(sums(tree, running)[node.name] for node in tree)
    percent, target, entitled = targets(tree, 100.0), targets(tree, total), entitlements(tree, total, demand)
    ordered = order_of(tree, running)
    places = {name: number / len(ordered) for number, name in enumerate(ordered)}
    whole = _whole(tree, used)
    return [
        Standing(
            node.name, parent, level, node.value, percent[node.name], target[node.name], entitled[node.name], whole[node.name],
            places.get(node.name),
        )
        for node, parent, level in walk(tree)
    ]  # fmt: skip


NO_TREE, NO_LEAF = 0.5, 1.0
"""Places of work without a share: in the middle where the VO has no shares, last where no leaf takes it."""


def _whole(nodes: Sequence[Node], used: Mapping[str, Use]) -> dict[str, Use]:
    """Node -> what its leaves have together."""
    found: dict[str, Use] = {}
    for node in nodes:
        found |= _whole(node.children, used)
        found[node.name] = (
            sum((found[child.name] for child in node.children), NOTHING) if node.children else used.get(node.name, NOTHING)
        )
    return found
