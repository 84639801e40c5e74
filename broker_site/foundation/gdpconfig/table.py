"""Configuration keys as a text: a line in brackets for each component, a line for each key, its documentation indented below.

    [jobbroker]
    NQUEUED_SAT_CAP | int files | 300 | 1.. | seed 001
        More files on the link to the nucleus: -link_unusable.

A key has its name, type with unit (of an enum: its choices), default, range and source. `[app:component]` names another app than
`jedi`; the default `unset` is none; `zero_is_unset` may stand behind the range; `#` begins a comment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from broker_site.foundation.gdpconfig.keys import APP, KEYS, Key
from broker_site.foundation.gdpconfig.texts import UNSET


def declare_table(table: str, rules: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """Add the keys of a table to those of this process; `rules`: name -> what else its `Key` has, such as `check`."""
    for name, columns in _rows(table):
        KEYS.declare(Key(name=name, **columns, **(rules or {}).get(name, {})))


def _rows(table: str) -> Iterator[tuple[str, dict[str, Any]]]:
    app = component = name = ""
    columns: dict[str, Any] = {}
    for line in filter(None, map(str.rstrip, table.splitlines())):
        if line.startswith(" "):
            columns["doc"] = f"{columns.get('doc', '')} {line.strip()}".strip()
            continue
        if name:
            yield name, columns
            name = ""
        if line.startswith("["):
            app, _, component = line.strip("[]").rpartition(":")
        elif not line.startswith("#"):
            name, kind, default, bounds, source = (cell.strip() for cell in line.split("|"))
            columns = {"app": app or APP, "component": component, "source": source, **_kind(kind), **_bounds(bounds)}
            columns["default"] = None if default == UNSET else default
    if name:
        yield name, columns


def _kind(cell: str) -> dict[str, Any]:
    kind, *words = cell.split()
    return {"type": kind, "choices": tuple(words)} if kind == "enum" else {"type": kind, "unit": " ".join(words)}


def _bounds(cell: str) -> dict[str, Any]:
    bounds, _, mark = cell.partition(" ")
    low, _, high = bounds.partition("..")
    return {"low": low or None, "high": high or None, "zero_is_unset": mark == "zero_is_unset"}
