"""The JSON Schema of our own grid document, made from the tables of attributes; `docs/reference/grid.schema.json` is its text.

It says for editors and for other programs what `grid_document` enforces, the references between the parts excepted.
"""

from __future__ import annotations

from typing import Any

from brokerage.rules.grid.attributes import (
    ACCESS_STATES,
    ACCESSES,
    FURTHER,
    LONGEST_NAME,
    NAME,
    QUEUE,
    ROLE,
    SITE,
    STORAGE,
    Table,
)
from brokerage.rules.grid.document import FORMAT, FROM_THE_DATABASE
from brokerage.rules.grid.measurements import ALL, LINK, MEASURED, SLOT, SOFTWARE_LISTS, SOFTWARE_OBJECTS, WINDOWS
from workqueues.rules.task_parameters import Parameter

_NUMERIC = r"^\s*{sign}\d+(\.\d+)?([eE][+-]?\d+)?\s*$"


def schema() -> dict[str, Any]:
    """The schema, draft 2020-12."""
    names = {"pattern": f"^{NAME}$", "maxLength": LONGEST_NAME}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": FORMAT,
        "description": "Sites, storage endpoints, computing queues, links, software and slots; manage.py import_grid reads it.",
        "type": "object",
        "required": ["format", "sites", "queues"],
        "additionalProperties": False,
        "properties": {
            "format": {"const": FORMAT},
            "now": {"type": "string", "description": "Time to which counts refer; not stored."},
            "sites": _entries(names, SITE, {}),
            "storages": _entries(names, STORAGE, {"status": _status()}),
            "queues": _entries(names, QUEUE, _queue_extras()),
            "links": _list("Ways of files between sites; each from, to and activity once.", LINK, {"mbps": _windows()}),
            "slots": _list("Declared slots; each queue, share and resource type once.", SLOT, {}),
            "measured": _list("What is measured of running jobs; each queue once.", MEASURED, {}),
            "software": _software(),
            **{
                part: {"description": "For a decision without a database; import_grid does not use it."}
                for part in FROM_THE_DATABASE
            },
        },
    }


def _entries(names: dict[str, Any], table: Table, extras: dict[str, Any]) -> dict[str, Any]:
    required = [p.name for p in table.values() if p.required] + (["atlas_site"] if table is QUEUE else [])
    entry: dict[str, Any] = {"type": "object", "properties": {p.name: _property(p) for p in table.values()} | extras}
    if required:
        entry["required"] = required
    return {"type": "object", "propertyNames": names, "additionalProperties": entry}


def _list(doc: str, table: Table, extras: dict[str, Any]) -> dict[str, Any]:
    entry = {
        "type": "object",
        "required": [p.name for p in table.values() if p.required],
        "properties": {p.name: _property(p) for p in table.values()} | extras,
    }
    return {"description": doc, "type": ["array", "null"], "items": entry}


def _windows() -> dict[str, Any]:
    return {
        "description": LINK["mbps"].doc,
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {window: {"type": ["number", "null"], "minimum": 0} for window in WINDOWS},
    }


def _software() -> dict[str, Any]:
    texts = {"type": ["array", "null"], "items": {"type": "string"}}
    member = {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}]}
    objects = {"type": ["array", "null"], "items": {"type": "object", "additionalProperties": member}}
    published = {
        "type": "object",
        "properties": dict.fromkeys(SOFTWARE_LISTS, texts) | dict.fromkeys(SOFTWARE_OBJECTS, objects),
    }
    return {
        "description": f"What queues publish, by name; {ALL} knows every tag.",
        "type": ["object", "null"],
        "additionalProperties": published,
    }


def _property(p: Parameter) -> dict[str, Any]:
    told: dict[str, Any] = {"description": p.doc}
    if p.default is not None:
        told["default"] = p.default
    match p.kind:
        case "int" | "number":
            number = {"type": "integer" if p.kind == "int" else "number", "minimum": p.low, "maximum": p.high}
            told["anyOf"] = [
                number,
                {"type": "string", "pattern": _NUMERIC.format(sign="-?" if p.low < 0 else "")},
                {"enum": ["", None]},
            ]
        case "flag":
            told["anyOf"] = [{"type": "boolean"}, {"enum": [0, 1, "", None]}]
        case "texts":
            told |= {"type": ["array", "null"], "items": {"type": "string"}}
        case "object":
            told["type"] = ["object", "null"]
        case _:
            told["type"] = "string" if p.required else ["string", "null"]
            told |= {"minLength": 1} if p.required else {}
            told |= {"maxLength": p.length} if p.length else {}
            told |= {"enum": [*p.choices, "", None]} if p.choices else {}
    return told


def _status() -> dict[str, Any]:
    return {
        "description": STORAGE["status"].doc,
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {access: {"enum": list(ACCESS_STATES)} for access in ACCESSES},
    }


def _queue_extras() -> dict[str, Any]:
    return {
        "nickname": {"type": ["string", "null"], "description": "The name again."},
        "atlas_site": {"type": "string", "minLength": 1, "description": "Site of the processors."},
        "astorages": {
            "type": ["object", "null"],
            "description": "Storage endpoints by role, the default first; other roles are kept, not used.",
            "patternProperties": {f"^{ROLE}$": {"type": "array", "items": {"type": "string"}}},
        },
        **{p.name: _property(p) for p in FURTHER.values()},
    }
