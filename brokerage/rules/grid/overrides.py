"""What operators may set by hand on the grid, how its text is read, and how it lies over what a document says.

Pure. Here: which attributes, one value, one row. Not here: the rows of overrides (`brokerage.ledger.grid_overrides`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from broker_site.foundation.kernel.registry import nearest
from brokerage.rules.grid.attributes import FURTHER, QUEUE, SITE, STORAGE, Table, read_value
from brokerage.rules.grid.document import status_faults
from workqueues.rules.refine.characters import check_characters
from workqueues.rules.task_parameters import found

Kind = Literal["site", "storage", "queue"]

TABLES: Mapping[Kind, Table] = {
    "site": SITE,
    "storage": {name: p for name, p in STORAGE.items() if name != "site"},
    "queue": {**QUEUE, **FURTHER},
}
"""Attributes that can be overridden."""

_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def read_override(kind: Kind, attribute: str, text: str) -> tuple[Any, str, str]:
    """The typed value of an override, the rule that it breaks ("" if none), and that in words; empty text means the default."""
    parameter = TABLES[kind].get(attribute)
    if parameter is None:
        near = nearest(attribute, TABLES[kind])
        return None, "unknown", f"a {kind} has no attribute {found(attribute)}" + (f"; the nearest is {near}" if near else "")
    raw: object = text
    if parameter.kind == "flag" and text.strip().lower() in (*_YES, *_NO):
        raw = text.strip().lower() in _YES
    elif parameter.kind in ("object", "texts") and text.strip():
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError):
            if parameter.kind == "object":
                return None, "json", f"expected a JSON object, found {found(text)}"
            raw = [item.strip() for item in text.split(",") if item.strip()]
    if problems := check_characters({attribute: raw}):
        return None, problems[0].rule, problems[0].message
    value, rule, message = read_value(parameter, raw)
    if not rule and attribute == "status" and kind == "storage":
        for place, broken, told in status_faults(value or {}):
            return None, broken, f"{place}: {told}"
    if not rule and attribute == "path" and ((value and not str(value).startswith("/")) or ".." in str(value).split("/")):
        return None, "format", "an absolute directory without '..', or nothing"
    return value, rule, message


def in_column(kind: Kind, attribute: str) -> bool:
    """Whether the attribute has a column of its own; the others stand among `attributes`."""
    return kind != "queue" or attribute in QUEUE


def value_in(kind: Kind, attribute: str, columns: Mapping[str, Any]) -> Any:
    """What a row says of an attribute; None where it says nothing."""
    return columns.get(attribute) if in_column(kind, attribute) else (columns.get("attributes") or {}).get(attribute)


def laid_over(kind: Kind, columns: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row with overridden values; None removes an attribute without column. Only given columns are changed."""
    laid = dict(columns)
    for attribute, value in values.items():
        if in_column(kind, attribute):
            if attribute in laid:
                laid[attribute] = value
        elif "attributes" in laid:
            others = {name: kept for name, kept in laid["attributes"].items() if name != attribute}
            laid["attributes"] = others if value is None else others | {attribute: value}
    return laid
