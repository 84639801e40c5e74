"""Hierarchical global shares: target, order and entitlement of the leaves (decisions C4, C5; facts on shares 6.1; row J2).

Amounts are HS06 (cores x HS06 per core), or any other unit that all of a call share. Values of nodes are relative weights among
siblings. Not here: which leaf a task belongs to (`share_mapping`), shares of work queues (`work_queue_shares`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from math import inf
from operator import add
from types import MappingProxyType
from typing import TypeVar

LARGEST = 1e9
"""The largest value of a node, so that sums and products of values stay numbers."""

FAR_BEHIND = 1e6
"""What stands for used / target where the target is 0: last."""

CATCH_UP, MOST_CATCH_UP = 3.0, 0.5
"""What a node had too much of late counts so many times beside what it uses; at most this part of its target, as too little."""


@dataclass(frozen=True, slots=True)
class Node:
    """One share: a leaf where it has no children."""

    name: str
    value: float
    children: tuple[Node, ...] = ()

    def leaves(self) -> Iterator[Node]:
        """The leaves below, or the node itself."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


Amounts = Mapping[str, float]
NO_AMOUNTS: Amounts = MappingProxyType({})
A = TypeVar("A")


def walk(nodes: Iterable[Node], parent: str = "", level: int = 0) -> Iterator[tuple[Node, str, int]]:
    """Every node with the name of its parent and its depth, parents before their children."""
    for node in nodes:
        yield node, parent, level
        yield from walk(node.children, node.name, level + 1)


def targets(tree: Sequence[Node], total: float) -> dict[str, float]:
    """Node -> what it should get of a total: divided among siblings by value, level by level."""
    whole = sum(node.value for node in tree)
    parts: dict[str, float] = {}
    for node in tree:
        parts[node.name] = total * node.value / whole if whole else 0.0
        parts |= targets(node.children, parts[node.name])
    return parts


def sums(tree: Sequence[Node], amounts: Mapping[str, A], nothing: A) -> dict[str, A]:
    """Node -> the sum of the amounts of its leaves; a leaf that is not named has `nothing`."""
    totals: dict[str, A] = {}
    for node in tree:
        totals |= sums(node.children, amounts, nothing)
        below = (totals[child.name] for child in node.children)
        totals[node.name] = reduce(add, below, nothing) if node.children else amounts.get(node.name, nothing)
    return totals


def order(tree: Sequence[Node], used: Amounts, ahead: Amounts = NO_AMOUNTS) -> list[str]:
    """The leaves in the order in which they are served: at each node those first that used least of their target.

    `ahead`: by how much each leaf used too much of late, below 0 too little (`catch_up`). Ties keep the order of the tree.
    """
    spent, late = sums(tree, used, 0.0), sums(tree, ahead, 0.0)
    aims = targets(tree, sum(spent[node.name] for node in tree))

    def behind(node: Node) -> float:
        if not (aim := aims[node.name]):
            return FAR_BEHIND
        return spent[node.name] / aim + max(-MOST_CATCH_UP, min(CATCH_UP * late[node.name] / aim, MOST_CATCH_UP))

    def walk(nodes: Sequence[Node]) -> Iterator[str]:
        for node in sorted(nodes, key=behind):
            if node.children:
                yield from walk(node.children)
            else:
                yield node.name

    return list(walk(tree))


def entitlements(tree: Sequence[Node], total: float, demand: Amounts) -> dict[str, float]:
    """Node -> what it may use now: its part, at most what its leaves demand; what it leaves goes to its siblings, then upwards.

    `demand`: per leaf, running + queued. A share of value 0 gets nothing, whatever it demands.
    """
    return _filled(tree, total, _wanted(tree, demand))


def _wanted(tree: Sequence[Node], demand: Amounts) -> dict[str, float]:
    """Node -> what it can use: the demand of its leaves, without those of value 0."""
    wishes: dict[str, float] = {}
    for node in tree:
        wishes |= _wanted(node.children, demand)
        wish = sum(wishes[child.name] for child in node.children) if node.children else demand.get(node.name, 0.0)
        wishes[node.name] = wish if node.value > 0 else 0.0
    return wishes


def _filled(nodes: Sequence[Node], amount: float, wanted: Amounts) -> dict[str, float]:
    """An amount poured over siblings by value; whoever is full hands on to the others."""
    level = _level([(node.value, wanted[node.name]) for node in nodes if node.value > 0], amount)
    filled: dict[str, float] = {}
    for node in nodes:
        filled[node.name] = min(node.value * level, wanted[node.name]) if node.value > 0 else 0.0
        filled |= _filled(node.children, filled[node.name], wanted)
    return filled


def _level(siblings: Sequence[tuple[float, float]], amount: float) -> float:
    """The amount for each unit of value at which siblings (value, wish) together take the amount; infinite if they cannot."""
    ordered = sorted(siblings, key=lambda sibling: sibling[1] / sibling[0])
    # Summed from the end: what is left of a sum, after large values are taken from it, says nothing of tiny ones.
    weights = [*accumulate(value for value, _ in reversed(ordered))]
    left = amount
    for (value, wish), weight in zip(ordered, reversed(weights), strict=True):
        if wish / value * weight >= left:
            return left / weight
        left -= wish
    return inf


class BadTree(ValueError):
    """A tree that cannot be used; the message names the node and the rule."""


def check(tree: Sequence[Node], parent: str = "the root") -> None:
    """Raise BadTree for a negative or huge value, siblings that are all zero, or a name that stands twice."""
    names = [node.name for node, _, _ in walk(tree)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadTree(f"{twice[0]}: the name stands twice")
    _check_level(tree, parent)


def _check_level(siblings: Sequence[Node], parent: str) -> None:
    for node in siblings:
        if node.value < 0:
            raise BadTree(f"{node.name}: a share of {node.value:g} is negative")
        if not node.value <= LARGEST:
            raise BadTree(f"{node.name}: a share of {node.value:g} is more than {LARGEST:g}")
        _check_level(node.children, node.name)
    if siblings and not any(node.value for node in siblings):
        raise BadTree(f"{parent}: all its shares are zero, so nothing could run below it")
