"""What an edited share tree would have meant for the work of some moments: who could use how much, and who came first.

Amounts are jobs, or any other unit that all of a call share (decision L1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from workqueues.rules.shares.tree import Amounts, Node, entitlements, order, targets, walk

Places = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Moment:
    """What each leaf ran and had waiting."""

    running: Amounts
    queued: Amounts


@dataclass(frozen=True, slots=True)
class ShareOutcome:
    """One share before and after; None where it is not there. `percent`: part of all; `entitled`: on average over the moments;
    `place`: of a leaf, its turn on average, 1 = first."""

    name: str
    percent: tuple[float | None, float | None]
    entitled: tuple[float | None, float | None]
    place: tuple[float | None, float | None]

    @property
    def pairs(self) -> tuple[tuple[float | None, float | None], ...]:
        return (self.percent, self.entitled, self.place)

    @property
    def differs(self) -> bool:
        return any(before != after for before, after in self.pairs)


@dataclass(frozen=True, slots=True)
class TreeTrial:
    """Over so many moments with work, in `reordered` of which leaves would have been served in another order."""

    moments: int
    reordered: int
    shares: Sequence[ShareOutcome]


def tree_trial(before: Sequence[Node], after: Sequence[Node], moments: Sequence[Moment]) -> TreeTrial:
    """Judge the moments under both trees. Moments without work say nothing and are left out."""
    busy = [moment for moment in moments if any(moment.running.values()) or any(moment.queued.values())]
    orders = [[order(tree, moment.running) for moment in busy] for tree in (before, after)]
    sides = [_side(tree, busy, places) for tree, places in zip((before, after), orders, strict=True)]
    names = dict.fromkeys(node.name for tree in (after, before) for node, _, _ in walk(tree))
    outcomes = [
        ShareOutcome(name, *((sides[0][kind].get(name), sides[1][kind].get(name)) for kind in ("percent", "entitled", "place")))
        for name in names
    ]
    return TreeTrial(len(busy), sum(old != new for old, new in zip(*orders, strict=True)), outcomes)


def _side(tree: Sequence[Node], moments: Sequence[Moment], orders: Sequence[Sequence[str]]) -> dict[str, dict[str, float]]:
    """Percentages, mean entitlements and mean places under one tree."""
    entitled = [_entitled(tree, moment) for moment in moments]
    places = [{name: at for at, name in enumerate(names, 1)} for names in orders]
    leaves = [leaf.name for node in tree for leaf in node.leaves()]
    return {
        "percent": targets(tree, 100.0),
        "entitled": {node.name: fmean(each[node.name] for each in entitled) for node, _, _ in walk(tree)} if moments else {},
        "place": {name: fmean(each[name] for each in places) for name in leaves} if moments else {},
    }


def _entitled(tree: Sequence[Node], moment: Moment) -> dict[str, float]:
    demand = {name: moment.running.get(name, 0.0) + moment.queued.get(name, 0.0) for name in {*moment.running, *moment.queued}}
    return entitlements(tree, sum(moment.running.values()), demand)
