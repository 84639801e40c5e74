"""The task queues with waiting jobs at one computing queue, and which of them suit a resource (rows D2, D4).

Columns of numbers and kept verdicts, so that a match among thousands of task queues costs tens of microseconds. Which of those
that suit is served first is the dispatch policy's (`brokerage.rules.dispatch.dispatch_policy`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.dispatch.kept_verdicts import Verdicts
from brokerage.rules.dispatch.requirement import (
    AMOUNTS,
    NO_HITS,
    Hits,
    Requirement,
    Resource,
    at_limit,
    values_of,
    without_amounts,
)

_CPU_TIME = AMOUNTS.index("cpu_time_s")


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

    def at_limit(self, hits: Hits) -> tuple[str, ...]:
        """The kinds of its jobs that are at their limit; empty: none."""
        return at_limit(self.values, hits)


Places = NDArray[np.intp]
"""Where some rows are in a list, ascending unless said otherwise."""


class WaitingList:
    """The task queues of one computing queue, as they were read. `verdicts`: what is known of them from earlier readings."""

    def __init__(self, waiting: Iterable[WaitingQueue], verdicts: Verdicts | None = None) -> None:
        self.rows: Sequence[WaitingQueue] = sorted(waiting, key=lambda one: (one.unit, -one.priority, one.job_id))
        self._verdicts = Verdicts() if verdicts is None else verdicts
        self._places = self._verdicts.places({row.id: row.requirement for row in self.rows})
        needs = [[getattr(row.requirement, name) for row in self.rows] for name in AMOUNTS]
        self._needs = np.array(needs, dtype=np.int32).reshape(len(AMOUNTS), len(self.rows))
        self._waits = np.ones(len(self.rows), dtype=np.bool_)
        self._row_of: dict[int, int] = {}
        self.units: Mapping[Unit, slice] = dict(self._slices())
        self.bounds = np.array([*(rows.start for rows in self.units.values()), len(self.rows)], np.intp)
        """Where the rows of each unit begin, and where the last ones end."""
        priorities, job_ids = (np.fromiter((row[i] for row in self.rows), np.int64, len(self.rows)) for i in (2, 3))
        self.turns = np.empty(len(self.rows), np.intp)
        """At each place the turn of its row among all, whosever they are."""
        self.turns[np.lexsort((job_ids, -priorities))] = np.arange(len(self.rows))

    def _slices(self) -> Iterator[tuple[Unit, slice]]:
        start = 0
        for unit, rows in groupby(self.rows, key=lambda row: row.unit):
            stop = start + sum(1 for _ in rows)
            yield unit, slice(start, stop)
            start = stop

    def fitting(self, resource: Resource, hits: Hits = NO_HITS) -> Fitting:
        """The task queues that suit a resource and are at no limit."""
        places = self._suiting(resource)
        return Fitting(self, places[self._waits[places]], hits)

    def suits(self, resource: Resource) -> bool:
        """Whether any of them suits the resource, limits apart, also one that was left out since."""
        return len(self._suiting(resource)) > 0

    def _suiting(self, resource: Resource) -> Places:
        flags = self._verdicts.of_kind(without_amounts(resource))[self._places]
        for needs, offered in zip(self._needs, (getattr(resource, name) for name in AMOUNTS), strict=True):
            if offered:
                flags &= needs <= max(offered, 0)  # below 0: nothing left, which is enough for no demand
        return np.flatnonzero(flags)

    def drained(self, waiting: WaitingQueue) -> None:
        """A task queue had no job: it is left out from now on."""
        if not self._row_of:
            self._row_of = {row.id: place for place, row in enumerate(self.rows)}
        place = self._row_of.get(waiting.id)
        if place is not None:
            self._waits[place] = False

    def cpu_times(self, places: Places) -> NDArray[np.int32]:
        """The CPU time, s, that the rows at these places need."""
        needed: NDArray[np.int32] = self._needs[_CPU_TIME]
        return needed[places]

    def is_drained(self, place: int) -> bool:
        """Whether that row was found without a job."""
        return not self._waits[place]


class Fitting:
    """The task queues of a list that suit one ask, by unit; each is looked at only when it is asked for."""

    def __init__(self, waiting: WaitingList, places: Places, hits: Hits) -> None:
        self._waiting, self._places, self._hits = waiting, places, hits

    def only(self, vos: Collection[str]) -> Fitting:
        """Those of some VOs."""
        mine = [self._of(unit) for unit in self._waiting.units if unit.vo in vos]
        return Fitting(self._waiting, np.concatenate([self._places[:0], *mine]), self._hits)

    def units(self) -> list[Unit]:
        """Units with at least one of them, limits apart."""
        bounds = np.searchsorted(self._places, self._waiting.bounds)
        return list(compress(self._waiting.units, bounds[1:] > bounds[:-1]))

    def of_units(self, units: Sequence[Unit]) -> Iterator[WaitingQueue]:
        """Those of these units, highest priority first, then the oldest job."""
        if len(units) == 1:
            yield from self._rows(self._of(units[0]))
            return
        places = self._places if len(units) == len(self.units()) else np.concatenate([self._places[:0], *map(self._of, units)])
        turns = self._waiting.turns[places]
        if len(places):
            yield from self._rows(places[[turns.argmin()]])
        yield from self._rows(places[np.argsort(turns)[1:]])

    def by_cpu_class(self, class_of: Callable[[int], int]) -> Iterator[list[WaitingQueue]]:
        """All, those first that are in the highest class of the CPU time that they need."""
        times, which = np.unique(self._waiting.cpu_times(self._places), return_inverse=True)
        classes = np.array([class_of(int(time)) for time in times], dtype=np.int64)[which]
        for each in np.unique(classes)[::-1]:
            yield list(self._rows(self._places[classes == each]))

    def __iter__(self) -> Iterator[WaitingQueue]:
        """All, by unit."""
        return self._rows(self._places)

    def _of(self, unit: Unit) -> Places:
        rows = self._waiting.units[unit]
        first, end = np.searchsorted(self._places, (rows.start, rows.stop))
        return self._places[first:end]

    def _rows(self, places: Places) -> Iterator[WaitingQueue]:
        for place in places:
            row = self._waiting.rows[int(place)]
            if not self._waiting.is_drained(int(place)) and not (self._hits and row.at_limit(self._hits)):
                yield row

    def held(self) -> list[tuple[WaitingQueue, tuple[str, ...]]]:
        """Those that suit and are at a limit, each with the kinds of jobs that are limited."""
        rows = (self._waiting.rows[int(place)] for place in self._places)
        return [(row, kinds) for row in rows if (kinds := row.at_limit(self._hits))]
