"""Keyset pages over a table by descending id, and counts that stop early.

A page never looks at more than WINDOW ids, so that a filter that nothing matches costs a bounded time whatever the table
holds; the page then says how far it looked, and its cursor goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Protocol, TypeVar

from django.core import signing
from django.db.models import Max, Min, QuerySet

from broker_site.foundation.rest.paging import LARGEST_ID

WINDOW = 100_000
COUNTED = 10_000
"""Largest number that a list counts to."""
LOWEST_ID = 1

Direction = Literal["older", "newer"]


class HasId(Protocol):
    @property
    def id(self) -> int:
        """What the list is ordered by."""


Row = TypeVar("Row", bound=HasId)


class BadCursor(ValueError):
    """A text that is not a cursor of ours."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a list: what comes after (older) or before (newer) the row with this id."""

    direction: Direction
    id: int

    def text(self) -> str:
        """The cursor as it stands in an address: opaque and signed."""
        return signing.dumps([self.direction[0], self.id], salt="keyset", compress=False)

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Read `text`; BadCursor."""
        try:
            direction, row_id = signing.loads(text, salt="keyset")
            return cls({"o": "older", "n": "newer"}[direction], int(row_id))  # type: ignore[arg-type]
        except (signing.BadSignature, ValueError, KeyError, TypeError) as error:
            raise BadCursor("this is not a place in a list") from error


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


def ends(table: QuerySet[Any]) -> tuple[int, int]:
    """The smallest and the largest id of the whole table, (1, 0) where it is empty: two steps in the index.

    Nothing is looked for below the smallest: rows that were archived have left millions of ids without one.
    """
    found = table.model._default_manager.using(table.db).aggregate(oldest=Min("pk"), newest=Max("pk"))
    return found["oldest"] or LOWEST_ID, found["newest"] or 0


def page(
    table: QuerySet[Any], read: Callable[[QuerySet[Any]], list[Row]], size: int, cursor: Cursor | None, *, narrow: bool
) -> Page[Row]:
    """One page of `table`. `narrow`: the filter uses an index of its own, so that no window is needed."""
    lowest, top = (LOWEST_ID, LARGEST_ID - 1) if narrow else ends(table)
    window = LARGEST_ID if narrow else WINDOW
    if cursor is not None and cursor.direction == "newer":
        part = _newer(table, read, size, cursor.id, min(cursor.id + window, top), top)
    else:
        below = cursor.id if cursor else top + 1
        part = _older(table, read, size, below, max(below - window, lowest), lowest, first=cursor is None)
    if cursor is None and part.older is None:
        return replace(part, count=Count(len(part.rows), more=False))
    return replace(part, count=_count(table, max(top - window, lowest), lowest))


def _older(
    table: QuerySet[Any],
    read: Callable[[QuerySet[Any]], list[Row]],
    size: int,
    below: int,
    floor: int,
    lowest: int,
    *,
    first: bool,
) -> Page[Row]:
    rows = read(table.filter(pk__lt=below, pk__gte=floor).order_by("-pk")[: size + 1])
    newer = None if first else Cursor("newer", rows[0].id if rows else below - 1)
    if len(rows) > size:
        return Page(rows[:size], Cursor("older", rows[size - 1].id), newer, None)
    if floor > lowest:
        return Page(rows, Cursor("older", floor), newer, None, looked_down_to=floor)
    return Page(rows, None, newer, None)


def _newer(
    table: QuerySet[Any], read: Callable[[QuerySet[Any]], list[Row]], size: int, above: int, ceiling: int, top: int
) -> Page[Row]:
    rows = read(table.filter(pk__gt=above, pk__lte=ceiling).order_by("pk")[: size + 1])
    shown = rows[:size][::-1]
    older = Cursor("older", shown[-1].id if shown else above + 1)
    if len(rows) > size:
        return Page(shown, older, Cursor("newer", shown[0].id), None)
    return Page(shown, older, Cursor("newer", ceiling) if ceiling < top else None, None)


def _count(table: QuerySet[Any], floor: int, lowest: int) -> Count:
    n = table.filter(pk__gte=floor).order_by()[: COUNTED + 1].count()
    return Count(min(n, COUNTED), more=n > COUNTED or floor > lowest)


def walk(
    table: QuerySet[Any], read: Callable[[QuerySet[Any]], list[Row]], cursor: Cursor | None, *, step: int, most: int
) -> Iterator[Row]:
    """All rows from the cursor down, `step` at a time, at most `most`; each statement is as bounded as that of a page."""
    lowest, top = ends(table)
    below = cursor.id if cursor is not None and cursor.direction == "older" else top + 1
    n = 0
    while below > lowest and n < most:
        part = _older(table, read, min(step, most - n), below, max(below - WINDOW, lowest), lowest, first=True)
        yield from part.rows
        n += len(part.rows)
        below = part.older.id if part.older else lowest
