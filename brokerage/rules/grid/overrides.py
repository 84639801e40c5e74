"""What operators may set by hand on the grid, how its text is read, and how it lies over what a document says.

Pure. Here: which attributes, one value, one row. Not here: the rows of overrides (`brokerage.ledger.grid_overrides`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import found
from brokerage.rules.grid.attributes import FURTHER, QUEUE, SITE, STORAGE, BadGrid, Table
from workqueues.rules.refine.characters import check_characters

Kind = Literal["site", "storage", "queue"]

TABLES: Mapping[Kind, Table] = {
    "site": SITE,
    "storage": {name: p for name, p in STORAGE.items() if name != "site"},
    "queue": {**QUEUE, **FURTHER},
}
"""Attributes that can be overridden."""


def read_override(kind: Kind, attribute: str, text: str) -> Any:
    """The typed value of an override; empty text means the default. Raises BadGrid."""
    declared = TABLES[kind].get(attribute)
    if declared is None:
        near = nearest(attribute, TABLES[kind])
        message = f"a {kind} has no attribute {found(attribute)}" + (f"; the nearest is {near}" if near else "")
        raise BadGrid([Problem("", "unknown", message)])
    raw = declared.from_text(text)
    if problems := check_characters({attribute: raw}):
        raise BadGrid([replace(problem, field="") for problem in problems])
    value = declared.read(raw)
    if kind == "storage" and attribute == "path" and value and not value.startswith("/"):
        raise BadGrid([Problem("", "format", "an absolute directory without '..', or nothing")])
    return value


def in_column(kind: Kind, attribute: str) -> bool:
    """Whether the attribute has a column of its own; the others stand among `attributes`."""
    return kind != "queue" or attribute in QUEUE


def value_in(kind: Kind, attribute: str, columns: Mapping[str, Any]) -> Any:
    """What a row says of an attribute; None where it says nothing."""
    return columns.get(attribute) if in_column(kind, attribute) else (columns.get("attributes") or {}).get(attribute)


def laid_over(kind: Kind, columns: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row with overridden values; None removes an attribute without column. Only given columns are changed."""
    row = dict(columns)
    for attribute, value in values.items():
        if in_column(kind, attribute):
            if attribute in row:
                row[attribute] = value
        elif "attributes" in row:
            others = {name: kept for name, kept in row["attributes"].items() if name != attribute}
            row["attributes"] = others if value is None else others | {attribute: value}
    return row
