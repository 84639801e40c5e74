"""The task queues with waiting jobs at one computing queue, and which of them suit a resource (rows D2, D4).

Columns of numbers and kept verdicts, so that a match among thousands of task queues costs tens of microseconds. Which of those
that suit is served first is the dispatch policy's (`brokerage.rules.dispatch.dispatch_policy`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

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
_AMOUNTS_OF = itemgetter(*map(Resource._fields.index, AMOUNTS))
_REST_OF = itemgetter(*(place for place, name in enumerate(Resource._fields) if name not in AMOUNTS))
MOST_ASKED, MOST_PLACES = 1000, 500_000
"""Of so many resources a list keeps which task queues suit them, of those with like amounts once; fewer where many suit each."""


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


_PRIORITY_OF, _JOB_OF, _UNIT_OF = attrgetter("priority"), attrgetter("job_id"), attrgetter("unit")
_AMOUNTS_NEEDED = attrgetter(*AMOUNTS)


def _in_order(waiting: Iterable[WaitingQueue]) -> list[WaitingQueue]:
    """By unit, then highest priority first, then the oldest job. In three steps, none of which makes a key for each row."""
    rows = sorted(waiting, key=_JOB_OF)
    rows.sort(key=_PRIORITY_OF, reverse=True)
    rows.sort(key=_UNIT_OF)
    return rows


Places = NDArray[np.intp]
"""Where some rows are in a list, ascending unless said otherwise."""


class _Rows:
    """The task queues of a list in order, and which of them still wait.

    What is kept of asks knows these, not the list that keeps it: in a ring they would stay until the collector of garbage looks
    at all there is, which a process that serves pilots does seldom, and each reading makes a list.
    """

    def __init__(self, rows: Sequence[WaitingQueue]) -> None:
        self.rows = rows
        needs = [_AMOUNTS_NEEDED(row.requirement) for row in rows]
        self.needs = np.array(needs, dtype=np.int32).reshape(len(rows), len(AMOUNTS)).T.copy()
        self.waits = np.ones(len(rows), dtype=np.bool_)
        self.units: Mapping[Unit, slice] = dict(self._slices())
        self.bounds = np.array([*(some.start for some in self.units.values()), len(rows)], np.intp)
        """Where the rows of each unit begin, and where the last ones end."""
        priorities, job_ids = (np.fromiter(map(of, rows), np.int64, len(rows)) for of in (_PRIORITY_OF, _JOB_OF))
        self.turns = np.empty(len(rows), np.intp)
        """At each place the turn of its row among all, whosever they are."""
        self.turns[np.lexsort((job_ids, -priorities))] = np.arange(len(rows))

    def _slices(self) -> Iterator[tuple[Unit, slice]]:
        start = 0
        for unit, rows in groupby(map(_UNIT_OF, self.rows)):
            stop = start + len([*rows])
            yield unit, slice(start, stop)
            start = stop

    def cpu_times(self, places: Places) -> NDArray[np.int32]:
        """The CPU time, s, that the rows at these places need."""
        needed: NDArray[np.int32] = self.needs[_CPU_TIME]
        return needed[places]

    def is_drained(self, place: int) -> bool:
        """Whether that row was found without a job."""
        return not self.waits[place]


class WaitingList:
    """The task queues of one computing queue, as they were read. `verdicts`: what is known of them from earlier readings."""

    def __init__(self, waiting: Iterable[WaitingQueue], verdicts: Verdicts | None = None) -> None:
        self.rows: Sequence[WaitingQueue] = _in_order(waiting)
        self._waiting = _Rows(self.rows)
        self._verdicts = Verdicts() if verdicts is None else verdicts
        self._places = self._verdicts.places({row.id: row.requirement for row in self.rows})
        self._steps = [sorted({*amounts.tolist()}) for amounts in self._waiting.needs]
        """What the task queues need of each amount: a little more or less that reaches no other step makes no difference."""
        self._asked: dict[tuple[Any, ...], Fitting] = {}
        self._n_places = 0
        self._row_of: dict[int, int] = {}

    def fitting(self, resource: Resource, hits: Hits = NO_HITS) -> Fitting:
        """The task queues that suit a resource and are at no limit."""
        reached = (
            bisect_right(steps, max(offered, 0)) if offered else len(steps)
            for steps, offered in zip(self._steps, _AMOUNTS_OF(resource), strict=True)
        )  # fmt: skip
        alike = (*_REST_OF(resource), *reached)
        fitting = self._asked.get(alike)
        if fitting is None:
            places = self._suiting(resource)
            fitting = Fitting(self._waiting, places[self._waiting.waits[places]], NO_HITS)
            if len(self._asked) >= MOST_ASKED or self._n_places + len(places) > MOST_PLACES:
                self._asked, self._n_places = {}, 0
            self._asked[alike] = fitting
            self._n_places += len(places)
        return fitting.but(hits) if hits else fitting

    def suits(self, resource: Resource) -> bool:
        """Whether any of them suits the resource, limits apart, also one that was left out since."""
        return len(self._suiting(resource)) > 0

    def _suiting(self, resource: Resource) -> Places:
        flags = self._verdicts.of_kind(without_amounts(resource))[self._places]
        for needs, steps, offered in zip(self._waiting.needs, self._steps, _AMOUNTS_OF(resource), strict=True):
            if offered and steps and offered < steps[-1]:
                flags &= needs <= max(offered, 0)  # below 0: nothing left, which is enough for no demand
        return flags.nonzero()[0]

    def drained(self, waiting: WaitingQueue) -> None:
        """A task queue had no job: it is left out from now on."""
        if not self._row_of:
            self._row_of = {row.id: place for place, row in enumerate(self.rows)}
        place = self._row_of.get(waiting.id)
        if place is not None:
            self._waiting.waits[place] = False


class Fitting:
    """The task queues of a list that suit one ask, by unit; each is looked at only when it is asked for.

    Asks that say the same share one, also those of several threads, while task queues of it are drained.
    """

    def __init__(self, waiting: _Rows, places: Places, hits: Hits) -> None:
        self._waiting, self._places, self._hits = waiting, places, hits

    def but(self, hits: Hits) -> Fitting:
        """Those of them that are at no limit."""
        return Fitting(self._waiting, self._places, hits)

    @cached_property
    def _others(self) -> Places:
        """Those behind it, in turn."""
        return self._places[self._waiting.turns[self._places].argsort()[1:]]

    def only(self, vos: Collection[str]) -> Fitting:
        """Those of some VOs."""
        mine = [self._of(unit) for unit in self._waiting.units if unit.vo in vos]
        return Fitting(self._waiting, np.concatenate([self._places[:0], *mine]), self._hits)

    def units(self) -> list[Unit]:
        """Units with at least one of them, limits apart."""
        return [*self._units]

    @cached_property
    def vos(self) -> Sequence[str]:
        """The VOs with at least one of them, limits apart."""
        return tuple(dict.fromkeys(unit.vo for unit in self._units))

    @cached_property
    def _units(self) -> Sequence[Unit]:
        bounds = self._places.searchsorted(self._waiting.bounds)
        return tuple(compress(self._waiting.units, bounds[1:] > bounds[:-1]))

    @cached_property
    def _first(self) -> Places:
        """The place of the one with the first turn, if there is one."""
        return self._places[[self._waiting.turns[self._places].argmin()]] if len(self._places) else self._places

    def of_units(self, units: Sequence[Unit]) -> Iterator[WaitingQueue]:
        """Those of these units, highest priority first, then the oldest job."""
        if len(units) == 1:
            yield from self._rows(self._of(units[0]))
            return
        if len(units) == len(self._units):
            mine = self
        else:
            mine = Fitting(self._waiting, np.concatenate([self._places[:0], *map(self._of, units)]), self._hits)
        yield from mine._rows(mine._first)
        yield from mine._rows(mine._others)

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
        first, end = self._places.searchsorted((rows.start, rows.stop))
        return self._places[first:end]

    def _rows(self, places: Places) -> Iterator[WaitingQueue]:
        waits = self._waiting.waits
        for place in places[waits[places]]:  # at once, as thousands may have been drained since this was made
            if not waits[place]:  # by now
                continue
            row = self._waiting.rows[int(place)]
            if not (self._hits and row.at_limit(self._hits)):
                yield row

    def held(self) -> list[tuple[WaitingQueue, tuple[str, ...]]]:
        """Those that suit and are at a limit, each with the kinds of jobs that are limited."""
        rows = (self._waiting.rows[int(place)] for place in self._places if not self._waiting.is_drained(int(place)))
        return [(row, kinds) for row in rows if (kinds := row.at_limit(self._hits))]
