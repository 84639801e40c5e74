"""In which order units are served by those who hand out jobs, kept up with what was handed out since it was counted.

Units are leaf shares, or work queues in a VO that these drive (decisions C1, C4). Amounts in HS06.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from workqueues.rules.shares.tree import NO_AMOUNTS, Amounts, Node, order
from workqueues.rules.shares.usage import NO_LEAF, NO_TREE

UNITS_A_JOB = 10
"""An order holds for as many jobs as it has times so many units, at least for one: to put many in order costs time."""


class UnitTree(NamedTuple):
    """The units of a VO, and what the leaves run as it was counted. `equal`: none is served before another. `ahead`: by how much
    leaves ran too much of late.
    """

    nodes: tuple[Node, ...]
    running: Amounts
    equal: bool = False
    ahead: Amounts = NO_AMOUNTS


class ServingOrder:
    """Where units stand: from 0, served first, to below 1. A VO with shares and work queues is driven by the latter."""

    def __init__(self, shares: Mapping[str, UnitTree], queues: Mapping[str, UnitTree]) -> None:
        self._trees = {**{("share", vo): tree for vo, tree in shares.items()}, **{("queue", vo): t for vo, t in queues.items()}}
        self._running = {key: dict(tree.running) for key, tree in self._trees.items()}
        self._places: dict[tuple[str, str], dict[str, float]] = {}
        self._jobs: Counter[tuple[str, str]] = Counter()

    @property
    def matters(self) -> bool:
        """Whether any unit is served before another."""
        return any(not tree.equal for tree in self._trees.values())

    def recount(self, running: Mapping[tuple[str, str, int], float]) -> None:
        """What all units (VO, share, work queue) run now: jobs that ended since they were counted do not count any more."""
        for (kind, vo), counted in self._running.items():
            counted.clear()
            for (of_vo, gshare, work_queue_id), hs06 in running.items():
                if of_vo == vo:
                    unit = gshare if kind == "share" else str(work_queue_id)
                    counted[unit] = counted.get(unit, 0.0) + hs06
        self._places.clear()

    def place(self, vo: str, gshare: str, work_queue_id: int) -> float:
        """Where a unit stands."""
        if ("queue", vo) in self._trees:
            place = self._of(("queue", vo)).get(str(work_queue_id))
            if place is not None:
                return place
        if not gshare:
            return NO_TREE
        return self._of(("share", vo)).get(gshare, NO_LEAF)

    def place_of(self, unit: tuple[str, str, int]) -> float:
        """Where a unit stands: VO, share and work queue."""
        if self._trees:
            return self.place(*unit)
        return NO_LEAF if unit[1] else NO_TREE

    def handed_out(self, vo: str, gshare: str, work_queue_id: int, hs06: float) -> None:
        """A job of the unit was handed out; its cores with their power."""
        for key, unit in ((("share", vo), gshare), (("queue", vo), str(work_queue_id))):
            if key in self._trees:
                running = self._running[key]
                running[unit] = running.get(unit, 0.0) + hs06
                self._jobs[key] += 1

    def _of(self, key: tuple[str, str]) -> Mapping[str, float]:
        tree = self._trees.get(key)
        if tree is None:
            return {}
        if key not in self._places or self._jobs[key] > len(self._places[key]) // UNITS_A_JOB:
            leaves = order(tree.nodes, self._running[key], tree.ahead)
            self._places[key] = {name: NO_TREE if tree.equal else i / len(leaves) for i, name in enumerate(leaves)}
            self._jobs[key] = 0
        return self._places[key]
