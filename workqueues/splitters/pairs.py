"""What stands together stays together (decision F6): which files of a secondary dataset belong to which master file.

The first job that gets a file of a tracked secondary dataset binds it to a master file: where each file of the master has its own
(a whole ratio), to that one; where each job has so many whatever it reads (nFilesPerJob, a numbered sequence), to the first of
the job. From then on only jobs with that master file get it. Where events are cut, it is the event of the file at which the job
begins. Pure. Not here: how many files a job takes (`secondaries`), and the rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from workqueues.rules.jobs.dataset_attributes import Attributes
from workqueues.splitters.protocol import Portion, SecondaryFiles, SecondaryRow

Binding = Literal["file", "job", ""]
"""To what the files of a secondary dataset are bound: each to a file of the master, or to the first one of the job; empty: to
nothing."""


class MasterSpan(NamedTuple):
    """A master file of a job, and the events of it that the job has: from `first` up to but not including `stop`, counted from 0;
    a file that is used whole has them all, whatever their number.
    """

    file_id: int
    first: int = 0
    stop: int = 1


class BoundRow(NamedTuple):
    """A file of a secondary dataset as a job gets it; `beside`: the master file and event to which it is bound from now on, None
    where it is bound already or to nothing.
    """

    row: SecondaryRow
    beside: tuple[int, int] | None = None


def binding_of(rule: Attributes) -> Binding:
    """How files of a dataset with these attributes are bound. Fractions of files, and events, pair with no file."""
    if not rule.tracked:
        return ""
    if rule.files_per_job is not None:
        return "job"
    return "file" if rule.event_ratio is None and rule.ratio == int(rule.ratio) else ""


def in_pairs(masters: Iterable[int], rows: Sequence[SecondaryRow], each: int) -> tuple[list[SecondaryRow], list[int]]:
    """The rows in the order of the master files that they are for, `each` a file, and the master files that get too few.

    Rows bound to one of them stand beside it, the others fill what is left, in their order.
    """
    bound: dict[int, list[SecondaryRow]] = {}
    free = []
    for row in rows:
        if row.beside_file is None:
            free.append(row)
        else:
            bound.setdefault(row.beside_file, []).append(row)
    ordered, short, at = list[SecondaryRow](), list[int](), 0
    for master in masters:
        own = bound.pop(master, [])
        more = free[at : at + each - len(own)]
        if len(own) + len(more) < each:
            short.append(master)
            continue
        ordered += [*own[:each], *more]
        at += len(more)
    return [*ordered, *free[at:]], short


class Stand:
    """The files of one secondary dataset while they are given to jobs."""

    def __init__(self, secondary: SecondaryFiles, *, by_boundary: bool = False) -> None:
        self._rows, rule = secondary.rows, secondary.secondary.rule
        self._binding: Binding = "" if by_boundary else binding_of(rule)
        self._bound: dict[int, list[SecondaryRow]] = {}
        for row in self._rows if self._binding else ():
            if row.beside_file is not None:
                self._bound.setdefault(row.beside_file, []).append(row)
        for bound in self._bound.values():
            bound.sort(key=lambda row: row.beside_event or 0)
        self._free = iter([row for row in self._rows if row.beside_file is None])

    def rows_for(self, masters: Sequence[MasterSpan], portion: Portion) -> list[BoundRow] | None:
        """What a job on these master files gets, as many as its portion has; None where what is bound to other master files would
        have to be taken.
        """
        if not self._binding:
            n = len(self._rows)
            return [BoundRow(self._rows[(portion.start + i) % n]) for i in range(portion.n)]
        if self._binding == "job":
            return self._rows_beside(masters, portion.n)
        each = portion.n // max(len(masters), 1)
        of_each = [self._rows_beside([master], each) for master in masters]
        return None if None in of_each else [row for rows in of_each for row in rows or ()]

    def _rows_beside(self, masters: Sequence[MasterSpan], n: int) -> list[BoundRow] | None:
        """So many files beside the first of these masters that has some, else new ones beside the first."""
        own = next((found for master in masters if (found := self._beside(master))), [])[:n]
        rows = [BoundRow(row) for row in own]
        beside = (own[0].beside_file or 0, own[0].beside_event or 0) if own else (masters[0].file_id, masters[0].first)
        while len(rows) < n:
            if (row := next(self._free, None)) is None:
                return None
            rows.append(BoundRow(row, beside))
        return rows

    def _beside(self, master: MasterSpan) -> list[SecondaryRow]:
        """The files bound to the first event of the span to which any are."""
        rows = self._bound.get(master.file_id, [])
        start = bisect_left(rows, master.first, key=lambda row: row.beside_event or 0)
        if start == len(rows) or (rows[start].beside_event or 0) >= max(master.stop, master.first + 1):
            return []
        return [row for row in rows[start:] if row.beside_event == rows[start].beside_event]
