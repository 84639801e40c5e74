"""The task queues with waiting jobs at one computing queue, and which of them suit a resource (rows D2, D4).

Columns of numbers and kept verdicts, so that a match among thousands of task queues costs tens of microseconds. Which of those
that suit is served first is the dispatch policy's (`brokerage.rules.dispatch.dispatch_policy`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.dispatch.requirement import (
    AMOUNTS,
    NO_HITS,
    Hits,
    Requirement,
    Resource,
    fits_but_for_amounts,
    values_of,
    without_amounts,
)

MOST_KINDS = 200
"""Kinds of resources for which a list keeps which task queues suit them; amounts do not make a kind."""


class Unit(NamedTuple):
    """Whose turn it is: a leaf share, or a work queue where those drive the VO."""

    vo: str
    gshare: str = ""
    work_queue_id: int = 0


class WaitingQueue(NamedTuple):
    """A task queue with waiting jobs: its requirement, whose it is, and the first of its jobs.

    `priority` of its best waiting job, `job_id` the oldest of these; `weight`: its part of the share of its group. `is_open`: its
    jobs are placed when they are leased; `storage`: where their outputs go from here.
    """

    id: int
    requirement: Requirement
    priority: int
    job_id: int = 0
    unit: Unit = Unit("")
    label: str = ""
    weight: float = 1.0
    is_open: bool = False
    storage: str = ""

    @property
    def turn(self) -> tuple[int, int]:
        """Its place among those of its unit: highest priority of a waiting job, then the oldest such job."""
        return -self.priority, self.job_id

    def values(self, attribute: str) -> frozenset[str]:
        """The values of an attribute that may be limited at sites; none where it has none."""
        own = {"gshare": self.unit.gshare, "prod_source_label": self.label}.get(attribute)
        if own is not None:
            return frozenset([own]) if own else frozenset()
        return values_of(self.requirement, attribute)

    def at_limit(self, hits: Hits) -> str:
        """The attribute, with its values, that is at its limit; empty: none."""
        for attribute, values in hits.items():
            if hit := sorted(self.values(attribute) & values):
                return f"{attribute} {', '.join(hit)}"
        return ""


Flags = NDArray[np.bool_]


class WaitingList:
    """The task queues of one computing queue, as they were read."""

    def __init__(self, waiting: Iterable[WaitingQueue]) -> None:
        self.rows: Sequence[WaitingQueue] = sorted(waiting, key=lambda one: (one.unit, one.turn))
        needs = [[getattr(row.requirement, name) for row in self.rows] for name in AMOUNTS]
        self._needs = np.array(needs, dtype=np.int64).reshape(len(AMOUNTS), len(self.rows))
        self._empty = np.zeros(len(self.rows), dtype=np.bool_)
        self._suits: dict[Resource, Flags] = {}
        self.units: Mapping[Unit, slice] = dict(self._slices())

    def _slices(self) -> Iterator[tuple[Unit, slice]]:
        start = 0
        for unit, rows in groupby(self.rows, key=lambda row: row.unit):
            stop = start + sum(1 for _ in rows)
            yield unit, slice(start, stop)
            start = stop

    def fitting(self, resource: Resource, hits: Hits = NO_HITS) -> Fitting:
        """The task queues that suit a resource and are at no limit."""
        return Fitting(self, self._suiting(resource) & ~self._empty, hits)

    def suits(self, resource: Resource) -> bool:
        """Whether any of them suits the resource, limits apart, also one that was left out since."""
        return bool(self._suiting(resource).any())

    def _suiting(self, resource: Resource) -> Flags:
        flags = self._of_kind(without_amounts(resource)).copy()
        for needs, offered in zip(self._needs, (getattr(resource, name) for name in AMOUNTS), strict=True):
            if offered:
                flags &= needs <= offered
        return flags

    def _of_kind(self, kind: Resource) -> Flags:
        flags = self._suits.get(kind)
        if flags is None:
            if len(self._suits) >= MOST_KINDS:
                self._suits.clear()
            verdicts = (fits_but_for_amounts(row.requirement, kind) for row in self.rows)
            flags = self._suits[kind] = np.fromiter(verdicts, np.bool_, len(self.rows))
        return flags

    def drained(self, waiting: WaitingQueue) -> None:
        """A task queue had no job: it is left out from now on."""
        for place in range(len(self.rows))[self.units[waiting.unit]]:
            if self.rows[place].id == waiting.id:
                self._empty[place] = True

    def is_drained(self, place: int) -> bool:
        """Whether that row was found without a job."""
        return bool(self._empty[place])


class Fitting:
    """The task queues of a list that suit one ask, by unit; each is looked at only when it is asked for."""

    def __init__(self, waiting: WaitingList, flags: Flags, hits: Hits) -> None:
        self._waiting, self._flags, self._hits = waiting, flags, hits

    def only(self, vos: Collection[str]) -> Fitting:
        """Those of some VOs."""
        flags = np.zeros_like(self._flags)
        for unit, rows in self._waiting.units.items():
            if unit.vo in vos:
                flags[rows] = self._flags[rows]
        return Fitting(self._waiting, flags, self._hits)

    def units(self) -> list[Unit]:
        """Units with at least one of them, limits apart."""
        return [unit for unit, rows in self._waiting.units.items() if self._flags[rows].any()]

    def of_unit(self, unit: Unit) -> Iterator[WaitingQueue]:
        """Those of a unit, highest priority first, then the oldest job."""
        rows = self._waiting.units[unit]
        return self._rows(np.flatnonzero(self._flags[rows]) + rows.start)

    def __iter__(self) -> Iterator[WaitingQueue]:
        """All, by unit."""
        return self._rows(np.flatnonzero(self._flags))

    def _rows(self, places: NDArray[np.intp]) -> Iterator[WaitingQueue]:
        for place in places:
            row = self._waiting.rows[int(place)]
            if not self._waiting.is_drained(int(place)) and not (self._hits and row.at_limit(self._hits)):
                yield row

    def held(self) -> list[tuple[WaitingQueue, str]]:
        """Those that suit and are at a limit, each with the limit."""
        rows = (self._waiting.rows[int(place)] for place in np.flatnonzero(self._flags))
        return [(row, hit) for row in rows if (hit := row.at_limit(self._hits))]
