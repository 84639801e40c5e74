"""The task queues with waiting jobs at one computing queue, and which of them suit a resource (rows D2, D4).

Columns of numbers and bits, so that a match among thousands of task queues costs tens of microseconds. Which of those
that suit is served first is the dispatch policy's (`brokerage.rules.dispatch.dispatch_policy`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.dispatch.requirement import (
    AMOUNTS,
    NO_HITS,
    Hits,
    Requirement,
    Resource,
    at_limit,
    values_of,
)
from brokerage.rules.dispatch.requirement_index import RequirementIndex

_CPU_TIME = AMOUNTS.index("cpu_time_s")
_AMOUNTS_OF = itemgetter(*map(Resource._fields.index, AMOUNTS))
_REST_OF = itemgetter(*(place for place, name in enumerate(Resource._fields) if name not in AMOUNTS))
MOST_ASKED, MOST_PLACES = 1000, 500_000
"""Of so many resources is kept which task queues of a list suit them, of those with like amounts once; of fewer where many do."""
MOST_FLAGS = 4_000_000
"""Of so many task queues, counted for each resource, is kept whether they suit it, amounts apart: one byte each."""

MOST_GONE = 0.25
"""What is known of the task queues of a list holds for the next reading while at most this part of them has no job any more."""

AT_ONCE = 256
"""So many are looked at together where some are drained: an ask that is held back by limits counts them for itself alone."""


class Unit(NamedTuple):
    """Whose turn it is: a leaf share, or a work queue where those drive the VO."""

    vo: str
    gshare: str = ""
    work_queue_id: int = 0


class WaitingQueue(NamedTuple):
    """A task queue with waiting jobs: its requirement, whose it is, and the first of its jobs.

    `priority` of its best waiting job, `job_id` the oldest of these; `weight`: its part of the share of its group. `is_open`: its
    jobs are placed when they are leased; `storage`: where their outputs go from here; `own_datasets`: these may be of this
    computing queue alone.
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
    own_datasets: bool = True

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
_ID_OF, _REQUIREMENT_OF, _AMOUNTS_NEEDED = attrgetter("id"), attrgetter("requirement"), attrgetter(*AMOUNTS)

Places = NDArray[np.intp]
"""Where some rows are in a list, ascending unless said otherwise."""


class Suiting(NamedTuple):
    """Which rows suit what was asked, and whose they are, limits apart."""

    asked: tuple[Any, ...]
    places: Places
    units: tuple[Unit, ...]
    vos: tuple[str, ...]


class _Members:
    """The task queues of a list by unit, what they require, and which of them suit what was asked, whatever jobs wait in them."""

    def __init__(self, rows: Iterable[WaitingQueue], index: RequirementIndex) -> None:
        in_order = sorted(rows, key=_ID_OF)
        in_order.sort(key=_UNIT_OF)
        self.ids = [row.id for row in in_order]
        self.place_of = {id_: place for place, id_ in enumerate(self.ids)}
        self._requirements, self._units = [*map(_REQUIREMENT_OF, in_order)], [*map(_UNIT_OF, in_order)]
        self.index, places = index, index.places(dict(zip(self.ids, self._requirements, strict=True)))
        self._first, self._bytes, self._bits = int(places.max(initial=-1)) + 1, places >> 3, (places & 7).astype(np.uint8)
        """Where each is among those of the index: of how many that has to know, in which byte, and there in which bit."""
        needs = np.array([*map(_AMOUNTS_NEEDED, self._requirements)], dtype=np.int32)
        self._needs = needs.reshape(len(self.ids), len(AMOUNTS)).T.copy()
        self._steps = [sorted({*amounts.tolist()}) for amounts in self._needs]
        """What the task queues need of each amount: a little more or less that reaches no other step makes no difference."""
        self.units: Mapping[Unit, slice] = dict(self._slices())
        self._bounds = np.array([*(rows.start for rows in self.units.values()), len(self.ids)], np.intp)
        self._asked: dict[tuple[Any, ...], Suiting] = {}
        self._described: dict[tuple[Any, ...], NDArray[np.bool_]] = {}
        """Whether each suits a resource, amounts apart: slots that differ in what is left of them share that."""
        self._n_places = 0

    def _slices(self) -> Iterator[tuple[Unit, slice]]:
        start = 0
        for unit, rows in groupby(self._units):
            stop = start + len([*rows])
            yield unit, slice(start, stop)
            start = stop

    def hold_for(self, rows: Mapping[int, WaitingQueue]) -> bool:
        """Whether these are among them, as they were but for their jobs, and not too few of them."""
        if not (1 - MOST_GONE) * len(self.ids) <= len(rows) or not rows.keys() <= self.place_of.keys():
            return False
        places = [self.place_of[id_] for id_ in rows]
        return all(
            [*map(of, rows.values())] == [known[place] for place in places]
            for of, known in ((_UNIT_OF, self._units), (_REQUIREMENT_OF, self._requirements))
        )

    def suiting(self, resource: Resource) -> Suiting:
        """Those that suit a resource. Asks that say the same, and whose amounts reach the same steps, get the same."""
        reached = [
            bisect_right(steps, max(offered, 0)) if offered else len(steps)
            for steps, offered in zip(self._steps, _AMOUNTS_OF(resource), strict=True)
        ]
        rest = _REST_OF(resource)
        asked = (*rest, *reached)
        known = self._asked.get(asked)
        if known is None:
            places = self._places_for(resource, rest)
            bounds = places.searchsorted(self._bounds)
            units = tuple(compress(self.units, bounds[1:] > bounds[:-1]))
            known = Suiting(asked, places, units, tuple(dict.fromkeys(unit.vo for unit in units)))
            if len(self._asked) >= MOST_ASKED or self._n_places + len(places) > MOST_PLACES:
                self._asked, self._n_places = {}, 0
            self._asked[asked] = known
            self._n_places += len(places)
        return known

    def _places_for(self, resource: Resource, rest: tuple[Any, ...]) -> Places:
        flags = self._described.get(rest)
        if flags is None:
            flags = self._flags(resource)
            if len(self._described) >= MOST_ASKED or (len(self._described) + 1) * len(flags) > MOST_FLAGS:
                self._described = {}
            self._described[rest] = flags
        for needs, steps, offered in zip(self._needs, self._steps, _AMOUNTS_OF(resource), strict=True):
            if offered and steps and offered < steps[-1]:
                flags = flags & (needs <= max(offered, 0))  # below 0: nothing left, which is enough for no demand
        return flags.nonzero()[0]

    def _flags(self, resource: Resource) -> NDArray[np.bool_]:
        """Whether the resource suits each, amounts apart."""
        said, there = self.index.suiting(resource, self._first), self.index.at(resource, self._first)
        flags: NDArray[np.uint8] = (said[self._bytes] & there[self._bytes]) >> self._bits & 1
        return flags.view(np.bool_)

    def cpu_times(self, places: Places) -> NDArray[np.int32]:
        """The CPU time, s, that the rows at these places need."""
        needed: NDArray[np.int32] = self._needs[_CPU_TIME]
        return needed[places]


class _Reading:
    """The jobs of the task queues of a list, as they were read, and which still wait.

    What is kept of asks knows this, not the list that keeps it: such a ring would stay until the collector of garbage looks at
    all there is, which a process that serves pilots does seldom, and each reading makes a list.
    """

    def __init__(self, members: _Members, rows: Mapping[int, WaitingQueue]) -> None:
        self.members = members
        self.at: Sequence[WaitingQueue | None] = [rows.get(id_) for id_ in members.ids]
        """The row at each place; None: the task queue had no job when they were read."""
        places = np.fromiter((members.place_of[id_] for id_ in rows), np.intp, len(rows))
        priorities, job_ids = (np.fromiter(map(of, rows.values()), np.int64, len(rows)) for of in (_PRIORITY_OF, _JOB_OF))
        self.turns = np.full(len(self.at), len(self.at), np.intp)
        """At each place the turn of its row among all, whosever they are: highest priority, then the oldest job. None: last."""
        self.turns[places[np.lexsort((job_ids, -priorities))]] = np.arange(len(rows))
        self.read = np.zeros(len(self.at), dtype=np.bool_)
        """At each place whether it has a row."""
        self.read[places] = True
        self.waits = self.read.copy()
        """At each place whether it has one that was not yet found without a job."""

    def in_turn(self, places: Places) -> Places:
        """The same places, those first whose rows have the first turn."""
        return places[self.turns[places].argsort()]


class WaitingList:
    """The task queues of one computing queue, as they were read.

    `index`: of those of earlier readings and other queues too. `before`: the list of the reading before; what suits what was
    found then holds as long as there are no others, and the index.
    """

    def __init__(
        self, waiting: Iterable[WaitingQueue], index: RequirementIndex | None = None, before: WaitingList | None = None
    ) -> None:
        self.row_of: Mapping[int, WaitingQueue] = {row.id: row for row in waiting}
        index = RequirementIndex() if index is None else index
        if before is not None and before.members.index is index and before.members.hold_for(self.row_of):
            self.members: _Members = before.members
        else:
            self.members = _Members(self.row_of.values(), index)
        self._reading = _Reading(self.members, self.row_of)
        self._asked: dict[int, Fitting] = {}
        """By the identity of what suits, which each keeps: its hash would be made of all that was asked."""
        self._n_places = 0

    @property
    def rows(self) -> list[WaitingQueue]:
        """All, by unit, each in turn."""
        places = [self._reading.in_turn(np.arange(unit.start, unit.stop)) for unit in self.members.units.values()]
        return [row for of_unit in places for place in of_unit if (row := self._reading.at[place]) is not None]

    def fitting(self, resource: Resource, hits: Hits = NO_HITS) -> Fitting:
        """The task queues that suit a resource and are at no limit."""
        suiting = self.members.suiting(resource)
        fitting = self._asked.get(id(suiting))
        if fitting is None:
            fitting = Fitting(self._reading, suiting, NO_HITS)
            if len(self._asked) >= MOST_ASKED or self._n_places + len(suiting.places) > MOST_PLACES:
                self._asked, self._n_places = {}, 0
            self._asked[id(suiting)] = fitting
            self._n_places += len(suiting.places)
        return Fitting(self._reading, suiting, hits) if hits else fitting

    def suits(self, resource: Resource) -> bool:
        """Whether any of them suits the resource, limits apart, also one that was left out since."""
        return bool(self._reading.read[self.members.suiting(resource).places].any())

    def waits(self, waiting: WaitingQueue) -> bool:
        """Whether a task queue is in the list and was not left out since."""
        place = self.members.place_of.get(waiting.id)
        return place is not None and bool(self._reading.waits[place])

    def drained(self, waiting: WaitingQueue) -> None:
        """A task queue had no job: it is left out from now on, unless it was read here with another first job."""
        row = self.row_of.get(waiting.id)
        if row is not None and row.turn == waiting.turn:
            self._reading.waits[self.members.place_of[waiting.id]] = False


class Fitting:
    """The task queues of a list that suit one ask, by unit; each is looked at only when it is asked for.

    Asks that say the same share one, also those of several threads, while task queues of it are drained.
    """

    def __init__(self, reading: _Reading, suiting: Suiting, hits: Hits) -> None:
        self._reading, self._suiting, self._hits = reading, suiting, hits
        # Not cached properties: these take a lock, and most asks read no more than the first.
        self._first_place: int | None = None
        self._other_places: Places | None = None
        self._n_drained = 0
        """So many of those behind the first are known to be drained, which none ceases to be: no ask walks through them again."""

    def only(self, vos: Collection[str]) -> Fitting:
        """Those of some VOs."""
        units = tuple(unit for unit in self._suiting.units if unit.vo in vos)
        some = Suiting(self._suiting.asked, self._of(units), units, tuple(vo for vo in self._suiting.vos if vo in vos))
        return Fitting(self._reading, some, self._hits)

    def units(self) -> list[Unit]:
        """The units of all of them, limits apart; also of those that were drained."""
        return [*self._suiting.units]

    @property
    def vos(self) -> Sequence[str]:
        """The VOs of all of them, limits apart; also of those that were drained."""
        return self._suiting.vos

    def of_units(self, units: Sequence[Unit]) -> Iterator[WaitingQueue]:
        """Those of these units, highest priority first, then the oldest job."""
        if len(units) == len(self._suiting.units):
            if len(self._suiting.places) and (row := self._row(self._first())) is not None:
                yield row
            others, waits, n = self._others(), self._reading.waits, self._n_drained
            while n < len(others) and not waits[others[n]]:
                some = waits[others[n : n + AT_ONCE]]
                n += int(some.argmax()) if some.any() else len(some)
            self._n_drained = n  # counted by each thread for itself: two that count together would pass over one that waits
            yield from self._walk(others[n:])
            return
        places = self._of(units)
        if len(places):
            if (row := self._row(places[self._reading.turns[places].argmin()])) is not None:
                yield row
            yield from self._rows(self._reading.in_turn(places)[1:])

    def _first(self) -> int:
        """The place of the one with the first turn, where there is one."""
        if self._first_place is None:
            places = self._suiting.places
            self._first_place = int(places[self._reading.turns[places].argmin()])
        return self._first_place

    def _others(self) -> Places:
        """The places of those behind it, in turn."""
        if self._other_places is None:
            self._other_places = self._reading.in_turn(self._suiting.places)[1:]
        return self._other_places

    def by_cpu_class(self, class_of: Callable[[int], int]) -> Iterator[list[WaitingQueue]]:
        """All, those first that are in the highest class of the CPU time that they need."""
        places = self._by_unit()
        times, which = np.unique(self._reading.members.cpu_times(places), return_inverse=True)
        classes = np.array([class_of(int(time)) for time in times], dtype=np.int64)[which]
        for each in np.unique(classes)[::-1]:
            yield list(self._rows(places[classes == each]))

    def __iter__(self) -> Iterator[WaitingQueue]:
        """All, by unit, each in turn."""
        return self._rows(self._by_unit())

    def _by_unit(self) -> Places:
        of_units = [self._reading.in_turn(self._of([unit])) for unit in self._suiting.units]
        return np.concatenate([self._suiting.places[:0], *of_units])

    def _of(self, units: Sequence[Unit]) -> Places:
        """The places of those of some units."""
        places, slices = self._suiting.places, (self._reading.members.units[unit] for unit in units)
        found = [places[slice(*places.searchsorted((rows.start, rows.stop)))] for rows in slices]
        return found[0] if len(found) == 1 else np.concatenate([places[:0], *found])

    def _rows(self, places: Places) -> Iterator[WaitingQueue]:
        return self._walk(places[self._reading.waits[places]])

    def _walk(self, places: Places) -> Iterator[WaitingQueue]:
        for place in map(int, places):  # most stop at the first
            if (row := self._row(place)) is not None:  # it may have been drained since the last one
                yield row

    def _row(self, place: int) -> WaitingQueue | None:
        """The row there, unless it was drained or is at a limit."""
        row = self._reading.at[place] if self._reading.waits[place] else None
        return None if row is None or (self._hits and row.at_limit(self._hits)) else row

    def held(self) -> list[tuple[WaitingQueue, tuple[str, ...]]]:
        """Those that suit and are at a limit, each with the kinds of jobs that are limited."""
        rows = Fitting(self._reading, self._suiting, NO_HITS)
        return [(row, kinds) for row in rows if (kinds := row.at_limit(self._hits))]
