"""Lines of change sets that add, change and remove rows of a steered table: what their kinds have in common.

An app whose table is steered derives a kind from `RowLines` and declares it. The table keeps what holds; who wrote it, until
when it holds and what follows stand in `Steered`. Nothing else writes to such a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from broker_site.foundation.gdpconfig.changesets import Line, Place, Standing, Step
from broker_site.foundation.gdpconfig.keys import APP, BadConfig
from broker_site.foundation.gdpconfig.line_kinds import LINE_KINDS
from broker_site.foundation.gdpconfig.models import Change, Steered
from broker_site.foundation.gdpconfig.row_columns import Column, canonical
from broker_site.foundation.kernel.verdict import Problem

UNKNOWN = "somebody"
"""Who wrote a row that has no history."""


class RowLines(ABC):
    """A kind of line for the rows of a table. `member`: its list in an exported file."""

    kind: ClassVar[str]
    member: ClassVar[str]
    columns: ClassVar[Sequence[Column]]
    told_empty: ClassVar[bool] = True
    """Whether an exported file has its list also where there is no row."""
    for_all: ClassVar[tuple[str, ...] | None] = ()
    """VOs whose rows are for all, beside those of the VOs that somebody may look into; None: the rows belong to no VO."""

    @abstractmethod
    def rows(self) -> Mapping[Place, str]:
        """Every row as text, in the order of an export; a number of queries that does not grow with them."""

    @abstractmethod
    def faults(self, steps: Sequence[Step], after: Mapping[Place, str]) -> Iterator[Problem]:
        """What is wrong with the table as it would be after the steps; `field`: of the line, `lines[2].parent`."""

    @abstractmethod
    def put(self, changes: Sequence[Change]) -> None:
        """Make the rows those of the changes."""

    def name_problems(self, place: Place) -> Iterator[Problem]:
        """What is wrong with name and VO of a row that shall stand; fields `key` and `vo`."""
        yield from ()

    def place(self, name: str, vo: str) -> Place:
        return Place(self.kind, APP, self.kind, name, vo)

    def check(self, line: Line) -> str:
        """The canonical text of all columns. BadConfig: a name or a column that cannot be."""
        problems = list(self.name_problems(line.place))
        if line.place != self.place(line.name, line.vo):
            problems.append(Problem("key", "name", f"{line.component[:40]}.{line.name[:40]} is no {line.place.key[:60]}"))
        try:
            text = canonical(self.columns, line.value)
        except BadConfig as bad:
            raise BadConfig(*problems, *bad.problems) from None
        if problems:
            raise BadConfig(*problems)
        return text

    def standing(self, places: Sequence[Place]) -> dict[Place, Standing]:
        """The rows at these places."""
        rows, marks = self.rows(), _marks(places)
        return {place: _standing(rows[place], marks.get(place)) for place in places if place in rows}

    def together(self, steps: Sequence[Step]) -> Sequence[Problem]:
        """The faults of the whole table; and nothing new ends by itself, since nothing would be there to follow."""
        problems = [
            Problem(
                f"lines[{step.number}].until", "rule", f"{step.place} is new: only a change of what is there can end by itself"
            )
            for step in steps
            if step.before is None and step.until is not None
        ]
        after = dict(self.rows())
        for step in steps:
            if step.after is None:
                after.pop(step.place, None)
            else:
                after[step.place] = step.after
        return [*problems, *self.faults(steps, after)]

    def write(self, changes: Sequence[Change]) -> None:
        """Make the rows those of the lines, and keep who did it."""
        self.put(changes)
        marks = _marks([change.place for change in changes])
        gone, changed, new = [], [], []
        for change in changes:
            mark = marks.get(change.place)
            if change.after is None:
                gone += [mark.pk] if mark else []
                continue
            lasting = None
            if change.until is not None:
                lasting = mark.afterwards if mark and mark.until is not None else change.before
            if mark is None:
                mark = Steered(**change.place._asdict())
                new.append(mark)
            else:
                changed.append(mark)
            mark.until, mark.afterwards, mark.change = change.until, lasting, change
        Steered.objects.filter(pk__in=gone).delete()
        Steered.objects.bulk_update(changed, ["until", "afterwards", "change"])
        Steered.objects.bulk_create(new)


def ending_rows(kind: str, marks: Sequence[Steered], first: int) -> list[Step]:
    """What follows temporary rows whose time is over: the lasting columns, or where those could not stand any more what is
    there now. `first`: the number of the first step."""
    lines = LINE_KINDS[kind]
    held = lines.standing([mark.place for mark in marks])
    steps = [
        Step(first + n, mark.place, held[mark.place].text, mark.until, mark.afterwards, None)
        for n, mark in enumerate(marks)
        if mark.place in held
    ]
    while bad := {problem.field.partition(".")[0] for problem in lines.together(steps)}:
        kept = [replace(s, after=s.before) if f"lines[{s.number}]" in bad else s for s in steps]
        if kept == steps:
            return [replace(s, after=s.before) for s in steps]
        steps = kept
    return steps


def _standing(text: str, mark: Steered | None) -> Standing:
    if mark is None:
        return Standing(text, None, 0, UNKNOWN)
    return Standing(text, mark.until, mark.change.change_set_id, mark.change.change_set.who)


def _marks(places: Sequence[Place]) -> dict[Place, Steered]:
    wanted = set(places)
    rows = Steered.objects.select_related("change__change_set").filter(name__in={place.name for place in wanted})
    return {mark.place: mark for mark in rows if mark.place in wanted}
