"""Keyset pages over a table by descending id, and counts that stop early.

A page of filtered rows looks at ids window after window, each as large as the speed so far allows, until it is full or the scan
budget is spent (decision L4): then it says how far it looked, and its cursor goes on from there. So a filter that nothing matches
costs a bounded time whatever the table holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from django.core import signing
from django.db.models import Max, Min, Model, QuerySet

LARGEST_ID = (1 << 63) - 1
FIRST_WINDOW = 2_000
"""Ids that a page looks at first."""
GROWTH = 50
"""How many times larger the next window may be."""
MOST_WINDOWS = 3
"""Statements of one look."""
BUDGET_S = 0.18
"""Time in which rows are looked for, so that the whole answer is there in 0.3 s."""
SURE = 0.55
"""Part of the speed so far that the next look surely has: what lies further down is read more seldom, and others work too."""
COUNTED = 10_000
"""Largest number that a list counts to."""
COUNT_WINDOW = 100_000
"""Ids among which rows are counted at most."""
LOWEST_ID = 1
KEPT_S = 7 * 86_400
"""How long a place in a list can be come back to."""

Direction = Literal["older", "newer"]


class HasId(Protocol):
    @property
    def id(self) -> int:
        """What the list is ordered by."""


Row = TypeVar("Row", bound=HasId)


class BadCursor(ValueError):
    """A text that is not a cursor of this list. `rule`: format, foreign or expired."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the list of a table: what comes after (older) or before (newer) the row with this id."""

    direction: Direction
    id: int
    table: str

    def text(self) -> str:
        """The cursor as it stands in an address: opaque and signed."""
        return signing.dumps([self.direction[0], self.id, self.table], salt="keyset", compress=False)

    @classmethod
    def read(cls, text: str, table: str) -> Cursor:
        """Read `text`; BadCursor."""
        try:
            direction, row_id, of = signing.loads(text, salt="keyset", max_age=KEPT_S)
            cursor = cls({"o": "older", "n": "newer"}[direction], int(row_id), str(of))  # type: ignore[arg-type]
        except signing.SignatureExpired:
            raise BadCursor("expired", "this place in the list is older than 7 days: begin anew, without it") from None
        except (signing.BadSignature, ValueError, KeyError, TypeError) as error:
            raise BadCursor("format", "this is not a place in a list: begin anew, without it") from error
        if cursor.table != table:
            raise BadCursor("foreign", "this is a place in another list: begin anew, without it")
        return cursor


def name_of(table: type[Any]) -> str:
    """The name of a table in the cursors of its lists."""
    return str(table._meta.label_lower)


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows there are; a lower bound where `more`."""

    n: int
    more: bool

    def __str__(self) -> str:
        return f"{self.n:,}{'+' if self.more else ''}"


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows, newest first. `looked_down_to`: the id at which looking for rows stopped before a full page was found."""

    rows: Sequence[Row]
    older: Cursor | None
    newer: Cursor | None
    count: Count | None
    looked_down_to: int | None = None


@dataclass(slots=True)
class _Look:
    """One look for rows: ids looked at, and what is left of the budget. `at_once`: rows are read when all are found."""

    began: float
    narrow: bool
    at_once: bool = False
    ids: int = 0
    statements: int = 0

    @property
    def spent_s(self) -> float:
        return time.monotonic() - self.began

    def window(self, most: int) -> int:
        """How many ids the next statement may look at; 0: the look is over."""
        if self.narrow:
            return most
        if self.statements >= MOST_WINDOWS or self.spent_s >= BUDGET_S:
            return 0
        affordable = self.affordable(BUDGET_S)
        grown = FIRST_WINDOW if not self.statements else self.ids * GROWTH
        return min(grown, affordable, most)

    def affordable(self, budget_s: float) -> int:
        """How many ids could be looked at in what is left of the budget, at the speed so far; at least a first window."""
        if not self.statements:
            return FIRST_WINDOW
        # That of a first, small look is mostly the way to the database and back: it is sure in itself.
        speed = self.ids / max(self.spent_s, 1e-4) * (1.0 if self.statements == 1 else SURE)
        return max(int(speed * (budget_s - self.spent_s)), FIRST_WINDOW)


def ends(table: QuerySet[Any]) -> tuple[int, int]:
    """The smallest and the largest id of the whole table, (1, 0) where it is empty: two steps in the index.

    Nothing is looked for below the smallest: rows that were archived have left millions of ids without one.
    """
    found = table.model._default_manager.using(table.db).aggregate(oldest=Min("pk"), newest=Max("pk"))
    return found["oldest"] or LOWEST_ID, found["newest"] or 0


def page(
    table: QuerySet[Any],
    read: Callable[[QuerySet[Any]], list[Row]],
    size: int,
    cursor: Cursor | None,
    *,
    narrow: bool,
    counted: bool = True,
    at_once: bool = False,
) -> Page[Row]:
    """One page of `table`. `narrow`: an index serves the filter, so that no windows are needed; `counted`: whether rows are
    counted; `at_once`: they are read when all are found, where reading some takes several statements.
    """
    lowest, top = (LOWEST_ID, LARGEST_ID - 1) if narrow else ends(table)
    look = _Look(time.monotonic(), narrow, at_once and not narrow)
    if cursor is not None and cursor.direction == "newer":
        part = _newer(table, read, size, cursor.id, top, look)
    else:
        part = _older(table, read, size, cursor.id if cursor else top + 1, lowest, look, first=cursor is None)
    if cursor is None and part.older is None:
        return replace(part, count=Count(len(part.rows), more=False))
    if not counted or (not narrow and look.spent_s > BUDGET_S / 2):
        return part
    window = LARGEST_ID if narrow else min(COUNT_WINDOW, look.affordable(BUDGET_S))
    return replace(part, count=_count(table, max(top - window, lowest), lowest))


def _older(
    table: QuerySet[Any],
    read: Callable[[QuerySet[Any]], list[Row]],
    size: int,
    below: int,
    lowest: int,
    look: _Look,
    *,
    first: bool,
) -> Page[Row]:
    name, rows, floor = name_of(table.model), list[Row](), below
    if look.at_once:
        return _ids_first(table, read, size, look, lambda ids: _older(ids, _numbers, size, below, lowest, look, first=first))
    while floor > lowest and len(rows) <= size and (window := look.window(floor - lowest)):
        top, floor = floor, floor - window
        rows += read(table.filter(pk__lt=top, pk__gte=floor).order_by("-pk")[: size + 1 - len(rows)])
        look.ids, look.statements = look.ids + window, look.statements + 1
    newer = None if first else Cursor("newer", _number(rows[0]) if rows else below - 1, name)
    if len(rows) > size:
        return Page(rows[:size], Cursor("older", _number(rows[size - 1]), name), newer, None)
    if floor > lowest:
        return Page(rows, Cursor("older", floor, name), newer, None, looked_down_to=floor)
    return Page(rows, None, newer, None)


def _newer(
    table: QuerySet[Any], read: Callable[[QuerySet[Any]], list[Row]], size: int, above: int, top: int, look: _Look
) -> Page[Row]:
    name, rows, ceiling = name_of(table.model), list[Row](), above
    if look.at_once:
        return _ids_first(table, read, size, look, lambda ids: _newer(ids, _numbers, size, above, top, look))
    while ceiling < top and len(rows) <= size and (window := look.window(top - ceiling)):
        bottom, ceiling = ceiling, ceiling + window
        rows += read(table.filter(pk__gt=bottom, pk__lte=ceiling).order_by("pk")[: size + 1 - len(rows)])
        look.ids, look.statements = look.ids + window, look.statements + 1
    shown = rows[:size][::-1]
    older = Cursor("older", _number(shown[-1]) if shown else above + 1, name)
    if len(rows) > size:
        return Page(shown, older, Cursor("newer", _number(shown[0]), name), None)
    return Page(shown, older, Cursor("newer", ceiling, name) if ceiling < top else None, None)


class _Numbered(NamedTuple):
    """A row of which only the number is known."""

    id: int


def _numbers(table: QuerySet[Any]) -> list[_Numbered]:
    return list(map(_Numbered, table.values_list("pk", flat=True)))


def _ids_first(
    table: QuerySet[Any],
    read: Callable[[QuerySet[Any]], list[Row]],
    size: int,
    look: _Look,
    find: Callable[[QuerySet[Any]], Page[_Numbered]],
) -> Page[Row]:
    """The page that `find` finds, with its rows."""
    look.at_once = False
    found = find(table)
    ids = [row.id for row in found.rows]
    rows = read(table.filter(pk__in=ids).order_by("-pk")) if ids else []
    return Page(rows, found.older, found.newer, found.count, found.looked_down_to)


def _number(row: HasId) -> int:
    return int(row.pk) if isinstance(row, Model) else row.id


def _count(table: QuerySet[Any], floor: int, lowest: int) -> Count:
    n = table.filter(pk__gte=floor).order_by()[: COUNTED + 1].count()
    return Count(min(n, COUNTED), more=n > COUNTED or floor > lowest)


def walk(
    table: QuerySet[Any],
    read: Callable[[QuerySet[Any]], list[Row]],
    cursor: Cursor | None,
    *,
    step: int,
    narrow: bool = False,
) -> Iterator[Row]:
    """All rows from the cursor down, `step` at a time: each statement is as bounded as that of a page, and no more is held."""
    lowest, top = (LOWEST_ID, LARGEST_ID - 1) if narrow else ends(table)
    below = cursor.id if cursor is not None and cursor.direction == "older" else top + 1
    while below > lowest:
        part = _older(table, read, step, below, lowest, _Look(time.monotonic(), narrow), first=True)
        yield from part.rows
        below = part.older.id if part.older else lowest
