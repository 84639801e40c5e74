"""Tables as columns: frozen structs of NumPy arrays, made from rows, changed for what-if, kept as compressed bytes.

Here: what every snapshot table shares. Not here: which columns there are (`brokerage.rules.facts.snapshot`).
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

Texts = NDArray[np.str_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CODEC = 1
"""Version of the byte format; a reader refuses any other."""

_DTYPES = {"text": np.dtype(np.str_), "int": np.dtype("<i8"), "float": np.dtype("<f8"), "flag": np.dtype("?")}


_MADE_OF: dict[tuple[type, frozenset[str]], frozenset[str]] = {}
"""What is made of which columns of which kind of table, once found."""


class BadRows(ValueError):
    """Rows that do not make a table: an unknown column, a value of the wrong type, two rows of one name."""


class Made(Generic[T]):
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
        known = base.__dict__
        made: T = known[self.name] if self.name in known else self.make(base)
        for sharing in (base, table._base if base is not table else None, table):
            if sharing is not None:
                sharing.__dict__[self.name] = made
        return made


def made_of(*columns: str) -> Callable[[Callable[[Any], T]], Made[T]]:
    """Declare a property that depends on just these columns."""
    return lambda make: Made(make, columns)


def text(default: str, doc: str) -> dict[str, Any]:
    """A column of text."""
    return {"kind": "text", "default": default, "doc": doc}


def whole(default: int, doc: str) -> dict[str, Any]:
    """A column of whole numbers."""
    return {"kind": "int", "default": default, "doc": doc}


def number(default: float, doc: str) -> dict[str, Any]:
    """A column of numbers."""
    return {"kind": "float", "default": default, "doc": doc}


def flag(default: bool, doc: str) -> dict[str, Any]:
    """A column of yes and no."""
    return {"kind": "flag", "default": default, "doc": doc}


@dataclass(frozen=True, eq=False)
class Columns:
    """A frozen table of named candidates, one array per column, rows in the order of their names."""

    noun: ClassVar[str] = "candidate"

    name: Texts = field(metadata=text("", "unique name of the candidate"))

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
    def fingerprint(self) -> str:
        """A digest of the names, in order: equal where rows stand for the same candidates."""
        return hashlib.sha256("\n".join(self.name.tolist()).encode()).hexdigest()[:16]

    def coded(self, column: str) -> tuple[tuple[str, ...], Ints]:
        """A text column as its distinct values and, per row, the place of its value among them: so a rule looks at few texts."""
        return self.derived(("coded", column), lambda table: _distinct(getattr(table, column)), (column,))

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
        known = table._derived
        if key not in known:
            known[key] = make(table)
        found: T = known[key]
        return found

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
        own = frozenset(columns)
        table = object.__new__(type(self))
        state = table.__dict__
        state.update(self.__dict__)
        for name in self._made_of(own):
            state.pop(name, None)
        state.update(columns, _base=self, _own=own, _derived={})
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
        table = cls(**{column: _array(ordered, column, kind, default) for column, (kind, default) in kinds.items()})
        if len(table.index) < len(table):
            raise BadRows(f"{cls.__name__}: two rows have the same name")
        return table

    def with_values(self, changes: Mapping[str, Mapping[str, Any]]) -> Self:
        """A copy for what-if.

        {name of the candidate, or `*` for all: {column: value}}. Raises BadRows on an unknown name or column.
        """
        arrays: dict[str, NDArray[Any]] = {}
        for name, values in changes.items():
            if name != "*" and name not in self.index:
                raise BadRows(f"{type(self).__name__}: no row {name!r}")
            for column, value in values.items():
                if column == "name" or column not in self.kinds():
                    raise BadRows(f"{type(self).__name__}: no column {column!r} to change")
                array = arrays.setdefault(column, np.array(getattr(self, column), dtype=object))
                array[slice(None) if name == "*" else self.index[name]] = value
        typed = {column: _typed(list(array), column, self.kinds()[column][0]) for column, array in arrays.items()}
        return replace(self, **typed)

    @classmethod
    def _made_of(cls, own: frozenset[str]) -> frozenset[str]:
        """The properties that are no longer right where the columns `own` are replaced."""
        if (known := _MADE_OF.get((cls, own))) is None:
            properties = {n: made for base in cls.__mro__ for n, made in vars(base).items() if isinstance(made, Made)}
            known = _MADE_OF[cls, own] = frozenset(n for n, made in properties.items() if not own.isdisjoint(made.of))
        return known

    def row(self, i: int) -> dict[str, Any]:
        """One row as plain values."""
        return {f.name: getattr(self, f.name)[i].item() for f in fields(self)}

    def to_bytes(self) -> bytes:
        """The table as compressed columns; text columns hold each distinct value once. Equal tables give equal bytes."""
        header: dict[str, Any] = {"table": type(self).__name__, "rows": len(self), "columns": {}}
        body = []
        for column, (kind, _) in self.kinds().items():
            values = getattr(self, column)
            if kind == "text":
                distinct, codes = np.unique(values, return_inverse=True)
                header["columns"][column] = distinct.tolist()
                body.append(codes.astype("<u4").tobytes())
            else:
                header["columns"][column] = kind
                body.append(values.astype(_DTYPES[kind]).tobytes())
        head = json.dumps(header, separators=(",", ":")).encode()
        return bytes([CODEC]) + zlib.compress(struct.pack("<I", len(head)) + head + b"".join(body), 6)

    @classmethod
    def from_bytes(cls, packed: bytes) -> Self:
        """Read `to_bytes`. A column that the bytes do not have (added since) takes its default, one that is gone is left out."""
        if not packed or packed[0] != CODEC:
            raise BadRows(f"{cls.__name__}: bytes of another format")
        raw = zlib.decompress(packed[1:])
        (size,) = struct.unpack_from("<I", raw)
        header = json.loads(raw[4 : 4 + size])
        if header["table"] != cls.__name__:
            raise BadRows(f"{cls.__name__}: these bytes are a table of {header['table']}")
        stored, rows = _unpack(header, raw, 4 + size), int(header["rows"])
        return cls(
            **{
                column: stored[column] if column in stored else _typed([default] * rows, column, kind)
                for column, (kind, default) in cls.kinds().items()
            }
        )


def _whole_value(value: Any) -> int:
    if int(value) != float(value):
        raise ValueError(f"{value!r} is not a whole number")
    return int(value)


def _flag_value(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{value!r} is neither true nor false")
    return bool(value)


_CONVERT: dict[str, Callable[[Any], Any]] = {"text": str, "int": _whole_value, "float": float, "flag": _flag_value}


def _distinct(values: Texts) -> tuple[tuple[str, ...], Ints]:
    distinct, codes = np.unique(values, return_inverse=True)
    return tuple(distinct.tolist()), codes.astype(np.int64)


def _array(rows: list[Mapping[str, Any]], column: str, kind: str, default: Any) -> NDArray[Any]:
    return _typed([default if (value := row.get(column)) is None else value for row in rows], column, kind)


def _typed(values: list[Any], column: str, kind: str) -> NDArray[Any]:
    convert = _CONVERT[kind]
    try:
        array = np.array([convert(value) for value in values], dtype=_DTYPES[kind])
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRows(f"column {column!r} ({kind}): {error}") from error
    array.flags.writeable = False
    return array


def _unpack(header: Mapping[str, Any], raw: bytes, offset: int) -> dict[str, NDArray[Any]]:
    rows, columns = int(header["rows"]), {}
    for column, what in header["columns"].items():
        dtype = np.dtype("<u4") if isinstance(what, list) else _DTYPES[what]
        values = np.frombuffer(raw, dtype, rows, offset)
        offset += rows * dtype.itemsize
        columns[column] = np.array(what, dtype=np.str_)[values] if isinstance(what, list) and rows else values
        if isinstance(what, list) and not rows:
            columns[column] = np.array([], dtype=np.str_)
    return columns
