"""Overrides as a JSON document, sorted and with one override a line, so that it can be kept and compared in a repository.

    {"overrides": [
    {"key": "jobbroker.NQUEUED_SAT_CAP", "value": "300"},
    {"key": "jobbroker.NQUEUED_SAT_CAP", "vo": "atlas", "value": "150", "until": "2026-12-24T18:00:00+00:00"}
    ]}

`vo` and `until` stand only where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from broker_site.foundation.access.jsonbody import decode
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.gdpconfig.changesets import Line, Place, split_key
from broker_site.foundation.gdpconfig.draft_form import read_time
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.models import Override
from broker_site.foundation.kernel.verdict import Problem

HEAD = "overrides"
MEMBERS = frozenset({"key", "vo", "value", "until"})
LARGEST = 2_000_000
"""Bytes of a document that are read."""


def exported() -> str:
    """Every override that is set; the same text for the same overrides."""
    rows = sorted(Override.objects.all(), key=lambda override: override.place)
    entries = [json.dumps(_entry(override), ensure_ascii=False) for override in rows]
    return json.dumps({HEAD: []}) + "\n" if not entries else f'{{"{HEAD}": [\n' + ",\n".join(entries) + "\n]}\n"


def imported(text: str, *, only: bool = False) -> list[Line]:
    """The lines that lead to what a document says; `only`: overrides that it does not name are removed.

    Overrides that hold already give lines that change nothing. BadConfig with every fault of the form.
    """
    entries = _entries(text)
    lines, faults = [], []
    for number, entry in enumerate(entries):
        found = list(_faults(entry, f"{HEAD}[{number}]"))
        faults += found
        if not found:
            lines.append(_line(entry))
    if faults:
        raise BadConfig(*faults)
    return [*lines, *(_unnamed({line.place for line in lines}) if only else ())]


def _entry(override: Override) -> dict[str, str]:
    entry = {"key": override.place.key}
    if override.vo:
        entry["vo"] = override.vo
    entry["value"] = override.value
    if override.until is not None:
        entry["until"] = override.until.astimezone(UTC).isoformat()
    return entry


def _entries(text: str) -> Sequence[Any]:
    if len(text) > LARGEST:
        raise BadConfig(Problem("document", "range", f"{len(text)} characters are more than the {LARGEST} that are read"))
    try:
        document = decode(text.encode())
    except Refused as refused:
        raise BadConfig(Problem("document", "json", f"it is no JSON that can be read: {refused.detail}")) from None
    if not isinstance(document, dict) or set(document) != {HEAD} or not isinstance(document[HEAD], list):
        raise BadConfig(Problem("document", "form", f"it is to be an object with one member, {HEAD}, which is a list"))
    entries: list[Any] = document[HEAD]
    return entries


def _faults(entry: Any, place: str) -> Iterator[Problem]:
    if not isinstance(entry, dict):
        yield Problem(place, "type", f"{place}: key and value are expected")
        return
    for name in sorted(map(str, set(entry) - MEMBERS)):
        known = ", ".join(sorted(MEMBERS))
        yield Problem(f"{place}.{name[:40]}", "unknown", f"{place}: {name[:40]!r} is not known; there are: {known}")
    for name in ("key", "vo"):
        if not isinstance(entry.get(name, "" if name == "vo" else None), str):
            yield Problem(f"{place}.{name}", "type", f"{place}: {name} is to be a text")
    if entry.get("value") is None:
        yield Problem(f"{place}.value", "required", f"{place}: a value is needed, as a text or a JSON value")
    try:
        _until(entry.get("until"))
    except ValueError:
        yield Problem(f"{place}.until", "format", f"{place}: until is to be a time as 2026-12-24T18:00:00Z")


def _until(said: Any) -> datetime | None:
    """ValueError for what is no time."""
    if said is None:
        return None
    if not isinstance(said, str):
        raise ValueError(said)
    return read_time(said)


def _line(entry: dict[str, Any]) -> Line:
    app, component, name = split_key(entry["key"])
    return Line(component, name, entry["value"], vo=entry.get("vo", ""), app=app, until=_until(entry.get("until")))


def _unnamed(named: set[Place]) -> Iterator[Line]:
    for override in Override.objects.all():
        if override.place not in named:
            yield Line(override.component, override.name, remove=True, vo=override.vo, app=override.app)
