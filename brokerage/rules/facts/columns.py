"""Tables as columns: frozen structs of NumPy arrays, made from rows, copied with other columns for one task.

Here: what every snapshot table shares. Not here: which columns there are (`brokerage.rules.facts.snapshot`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

Texts = NDArray[np.str_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_DTYPES = {"text": np.dtype(np.str_), "int": np.dtype("<i8"), "float": np.dtype("<f8"), "flag": np.dtype("?")}


_MADE_OF: dict[tuple[type, frozenset[str]], frozenset[str]] = {}
"""What is made of which columns of which kind of table, once found."""


class BadRows(ValueError):
    """Rows that do not make a table: an unknown column, a value of the wrong type, two rows of one name."""


class ColumnProperty(Generic[T]):
    """A property of a table that is made of some of its columns, once for all tables that share those (`made_of`)."""

    def __init__(self, make: Callable[[Any], T], of: tuple[str, ...]) -> None:
        self.make, self.of = make, of
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, table: None, owner: type) -> Self: ...
    @overload
    def __get__(self, table: Columns, owner: type) -> T: ...
    def __get__(self, table: Columns | None, owner: type) -> Self | T:
        if table is None:
            return self
        base = table.base_for(self.of)
        properties = base.__dict__
        value: T = properties[self.name] if self.name in properties else self.make(base)
        for sharing in (base, table._base if base is not table else None, table):
            if sharing is not None:
                sharing.__dict__[self.name] = value
        return value


def made_of(*columns: str) -> Callable[[Callable[[Any], T]], ColumnProperty[T]]:
    """Declare a property that depends on just these columns."""
    return lambda make: ColumnProperty(make, columns)


def _column(kind: str, default: str | float, doc: str) -> Any:
    """A field that is a column of this kind; `default`: the value of a row that gives none."""
    return field(metadata={"kind": kind, "default": default, "doc": doc})


text, whole, number, flag = (partial(_column, kind) for kind in ("text", "int", "float", "flag"))


@dataclass(frozen=True, eq=False)
class Columns:
    """A frozen table of named candidates, one array per column, rows in the order of their names."""

    noun: ClassVar[str] = "candidate"

    name: Texts = text("", "unique name of the candidate")  # noqa: RUF009 - a field

    def __post_init__(self) -> None:
        if len({len(getattr(self, f.name)) for f in fields(self)}) > 1:
            raise BadRows(f"{type(self).__name__}: columns differ in length")

    def __len__(self) -> int:
        return len(self.name)

    @made_of("name")
    def index(self) -> Mapping[str, int]:
        """Name to row."""
        return {name: i for i, name in enumerate(self.name.tolist())}

    @made_of("name")
    def rows_for_one(self) -> int:
        """The largest number of rows that count as one candidate in a choice."""
        return 1

    def first_of_each(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Of these rows the first of each that counts as one candidate in a choice; here each row is one."""
        return rows

    @made_of("name")
    def fingerprint(self) -> str:
        """A digest of the names, in order: equal where rows stand for the same candidates."""
        return hashlib.sha256("\n".join(self.name.tolist()).encode()).hexdigest()[:16]

    def coded(self, column: str) -> tuple[tuple[str, ...], Ints]:
        """A text column as its distinct values and, per row, the place of its value among them: so a rule looks at few texts."""

        def distinct(table: Columns) -> tuple[tuple[str, ...], Ints]:
            texts, codes = np.unique(getattr(table, column), return_inverse=True)
            return tuple(texts.tolist()), codes.astype(np.int64)

        return self.derived(("coded", column), distinct, (column,))

    def where_text(self, column: str, question: Hashable, holds: Callable[[str], bool]) -> Flags:
        """The rows for whose text in a column `holds`; `question` names what is asked, so that it is asked once."""

        def ask(table: Columns) -> Flags:
            texts, at = table.coded(column)
            return np.array([holds(text) for text in texts], dtype=np.bool_)[at]

        return self.derived((column, question), ask, (column,))

    def derived(self, key: Hashable, make: Callable[[Any], T], of: tuple[str, ...] = ()) -> T:
        """What `make` computes from the columns, computed once: `key` names it and everything else that it depends on.

        `of` names the columns that it depends on, none given = all: tables that share these share what is made of them.
        """
        table = self.base_for(of)
        values = table._derived
        if key not in values:
            values[key] = make(table)
        value: T = values[key]
        return value

    def base_for(self, columns: tuple[str, ...]) -> Columns:
        """The table that these columns come from: this one, or one of which it is a copy with other columns."""
        table: Columns = self
        while columns and table._base is not None and table._own.isdisjoint(columns):
            table = table._base
        return table

    _base: ClassVar[Columns | None] = None
    _own: ClassVar[frozenset[str]] = frozenset()

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def with_columns(self, **columns: NDArray[Any]) -> Self:
        """A copy with other arrays for some columns, as for one task; what is made of the others alone is not made again.

        Types and lengths are those of the columns that they replace.
        """
        replaced = frozenset(columns)
        table = object.__new__(type(self))
        state = table.__dict__
        state.update(self.__dict__)
        for name in self._made_of(replaced):
            state.pop(name, None)
        state.update(columns, _base=self, _own=replaced, _derived={})
        return table

    @classmethod
    def kinds(cls) -> Mapping[str, tuple[str, Any]]:
        """Column to (kind, value of a row that does not give it)."""
        return {f.name: (f.metadata["kind"], f.metadata["default"]) for f in fields(cls)}

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Build from plain rows {column: value}; an absent or null value takes the column's default. Raises BadRows."""
        ordered = sorted(rows, key=lambda row: str(row.get("name", "")))
        kinds = cls.kinds()
        for row in ordered:
            if not row.keys() <= kinds.keys():
                raise BadRows(f"{cls.__name__}: no column {sorted(row.keys() - kinds.keys())}")
        columns = {
            column: [default if (value := row.get(column)) is None else value for row in ordered]
            for column, (_, default) in kinds.items()
        }
        table = cls(**{column: _typed(values, column, kinds[column][0]) for column, values in columns.items()})
        if len(table.index) < len(table):
            raise BadRows(f"{cls.__name__}: two rows have the same name")
        return table

    @classmethod
    def _made_of(cls, replaced: frozenset[str]) -> frozenset[str]:
        """The properties that are no longer right where the columns `replaced` have other arrays."""
        if (stale := _MADE_OF.get((cls, replaced))) is None:
            properties = {n: p for base in cls.__mro__ for n, p in vars(base).items() if isinstance(p, ColumnProperty)}
            stale = _MADE_OF[cls, replaced] = frozenset(n for n, p in properties.items() if not replaced.isdisjoint(p.of))
        return stale

    def row(self, i: int) -> dict[str, Any]:
        """One row as plain values."""
        return {f.name: getattr(self, f.name)[i].item() for f in fields(self)}


def _whole_value(value: Any) -> int:
    if int(value) != float(value):
        raise ValueError(f"{value!r} is not a whole number")
    return int(value)


def _flag_value(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{value!r} is neither true nor false")
    return bool(value)


_CONVERT: dict[str, Callable[[Any], Any]] = {"text": str, "int": _whole_value, "float": float, "flag": _flag_value}


def _typed(values: list[Any], column: str, kind: str) -> NDArray[Any]:
    convert = _CONVERT[kind]
    try:
        array = np.array([convert(value) for value in values], dtype=_DTYPES[kind])
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRows(f"column {column!r} ({kind}): {error}") from error
    array.flags.writeable = False
    return array
