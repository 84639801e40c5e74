"""What is steered as a document, sorted, so that it can be kept and compared in a repository: as JSON with one override or row a
line, or as YAML with one member a line. Both are read.

    {"overrides": [
    {"key": "jobbroker.NQUEUED_SAT_CAP", "value": "300"},
    {"key": "jobbroker.NQUEUED_SAT_CAP", "vo": "atlas", "value": "150", "until": "2026-12-24T18:00:00+00:00"}
    ],
    "shares": [
    {"name": "MC", "vo": "atlas", "parent": "Production", "value": 60, "position": 2, ...}
    ]}

    overrides:
    - key: jobbroker.NQUEUED_SAT_CAP
      value: 300

`vo` and `until` stand only where there is one. Lists that a file does not have are left alone, also with `only`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from broker_site.foundation.access.jsonbody import decode
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.gdpconfig.changesets import CONFIG, Line, Place, columns_of, named_line
from broker_site.foundation.gdpconfig.draft_form import read_time
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.line_kinds import LINE_KINDS
from broker_site.foundation.gdpconfig.models import Override, Steered
from broker_site.foundation.gdpconfig.row_lines import RowLines
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.yaml_text import YamlFault, read_yaml, written

HEAD = "overrides"
MEMBERS = frozenset({"key", "vo", "value", "until"})
ROW_MEMBERS = frozenset({"name", "vo", "until"})
"""Of a row, beside its columns."""
LARGEST = 2_000_000
"""Characters of a document that are read."""
AS_WRITTEN = ((HEAD, "value"),)
"""Values of keys are texts of the key's type: in YAML what stands there without quotes is that text, also `1e3` and `on`."""
_AT = re.compile(r"lines\[(\d+)\](.*)")


@dataclass(frozen=True, slots=True)
class Read:
    """The lines that a document means. `places`: where each is named in it, empty: it is not; `at`: in which line that stands."""

    document: Mapping[str, Sequence[Any]]
    lines: Sequence[Line]
    places: Sequence[str]
    at: Mapping[str, int]

    def located(self, bad: BadConfig) -> BadConfig:
        """The same faults, of lines by where they stand in the document."""
        return BadConfig(*(self._located(problem) for problem in bad.problems))

    def _located(self, problem: Problem) -> Problem:
        found = _AT.fullmatch(problem.field)
        place = self.places[int(found[1])] if found and int(found[1]) < len(self.places) else ""
        return _at_line(Problem(place + found[2], problem.rule, problem.message), self.at) if found and place else problem


def exported(form: str = "json") -> str:
    """Every override that is set, and every row of the steered tables; the same text for the same state. `form`: json or yaml."""
    return as_text(standing(), form)


def as_text(lists: Mapping[str, Sequence[Mapping[str, Any]]], form: str = "json") -> str:
    """Lists of overrides and rows as a document."""
    if form == "yaml":
        return written(lists, AS_WRITTEN)
    return "{" + ",\n".join(_list(name, entries) for name, entries in lists.items()) + "}\n"


def standing() -> dict[str, Sequence[dict[str, Any]]]:
    """What is exported, by list."""
    rows = sorted(Override.objects.all(), key=lambda override: override.place)
    lists: dict[str, Sequence[dict[str, Any]]] = {HEAD: [_entry(override) for override in rows]}
    for kind in row_kinds():
        until = {mark.place: mark.until for mark in Steered.objects.filter(kind=kind.kind, until__isnull=False)}
        entries = [_row_entry(place, text, until.get(place)) for place, text in kind.rows().items()]
        if entries or kind.told_empty:
            lists[kind.member] = entries
    return lists


def imported(text: str, *, only: bool = False) -> list[Line]:
    """The lines that lead to what a document says; `only`: what its lists do not name is removed.

    What holds already gives lines that change nothing. BadConfig with every fault of the form.
    """
    return list(read_document(text, only=only).lines)


def read_document(text: str, *, only: bool = False) -> Read:
    """As `imported`, with where each line stands."""
    lists, at = read_lists(text)
    lines, places, faults = list[Line](), list[str](), list[Problem]()
    for head, entries in lists.items():
        named = set()
        for number, entry in enumerate(entries):
            found = list(_faults(entry, head, number))
            faults += found
            if not found:
                lines.append(_line(entry, head))
                places.append(f"{head}[{number}]")
                named.add(lines[-1].place)
        if only:
            lines += _unnamed(head, named)
            places += [""] * (len(lines) - len(places))
    if faults:
        raise BadConfig(*(_at_line(fault, at) for fault in faults))
    return Read(lists, lines, places, at)


def row_kinds() -> list[RowLines]:
    """The kinds of line whose rows stand in a file."""
    return [kind for kind in map(LINE_KINDS.__getitem__, LINE_KINDS) if isinstance(kind, RowLines)]


def _list(name: str, entries: Sequence[Mapping[str, Any]]) -> str:
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    return f'"{name}": [\n' + ",\n".join(lines) + "\n]" if lines else f'"{name}": []'


def _row_entry(place: Place, text: str, until: datetime | None) -> dict[str, Any]:
    entry = {"name": place.name, **({"vo": place.vo} if place.vo else {}), **columns_of(text)}
    return entry | ({"until": until.astimezone(UTC).isoformat()} if until else {})


def _entry(override: Override) -> dict[str, str]:
    entry = {"key": override.place.key}
    if override.vo:
        entry["vo"] = override.vo
    entry["value"] = override.value
    if override.until is not None:
        entry["until"] = override.until.astimezone(UTC).isoformat()
    return entry


def read_lists(text: str) -> tuple[dict[str, Sequence[Any]], Mapping[str, int]]:
    """The lists that a text has, and in which line each entry of YAML stands. BadConfig."""
    if len(text) > LARGEST:
        raise BadConfig(Problem("document", "range", f"{len(text)} characters are more than the {LARGEST} that are read"))
    document, at = _value(text.removeprefix("\ufeff"))
    heads = [HEAD, *(kind.member for kind in row_kinds())]
    if not isinstance(document, dict) or not document or not set(document) <= set(heads):
        raise BadConfig(
            Problem("document", "form", f"it is to be an object with the members {', '.join(heads)}, or some of them")
        )
    for name, entries in document.items():
        if not isinstance(entries, list):
            raise BadConfig(_at_line(Problem(name, "type", f"{name} is to be a list"), at))
    return document, at


def _value(text: str) -> tuple[Any, Mapping[str, int]]:
    if text.lstrip()[:1] in ("", "{", "["):
        try:
            return decode(text.encode()), {}
        except (Refused, UnicodeError) as refused:
            told = getattr(refused, "detail", "a character that no text may have")
            raise BadConfig(Problem("document", "json", f"it is no JSON that can be read: {told}")) from None
    try:
        read = read_yaml(text, AS_WRITTEN)
    except YamlFault as fault:
        raise BadConfig(Problem("document", "yaml", f"it is no YAML that can be read: {fault}")) from None
    return read.value, read.lines


def _at_line(problem: Problem, at: Mapping[str, int]) -> Problem:
    line = at.get(problem.field) or at.get(problem.field.rpartition(".")[0])
    return Problem(problem.field, problem.rule, f"line {line}: {problem.message}") if line else problem


def _faults(entry: Any, head: str, number: int) -> Iterator[Problem]:
    place = f"{head}[{number}]"
    key = "key" if head == HEAD else "name"
    if not isinstance(entry, dict):
        yield Problem(place, "type", f"{place}: {key} and value are expected")
        return
    if head == HEAD:
        for name in sorted(map(str, set(entry) - MEMBERS)):
            known = ", ".join(sorted(MEMBERS))
            yield Problem(f"{place}.{name[:40]}", "unknown", f"{place}: {name[:40]!r} is not known; there are: {known}")
        if entry.get("value") is None:
            yield Problem(f"{place}.value", "required", f"{place}: a value is needed, as a text or a JSON value")
    for name in (key, "vo"):
        if not isinstance(entry.get(name, "" if name == "vo" else None), str):
            yield Problem(f"{place}.{name}", "type", f"{place}: {name} is to be a text")
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


def _line(entry: dict[str, Any], head: str) -> Line:
    until, vo = _until(entry.get("until")), entry.get("vo", "")
    if head == HEAD:
        return named_line(CONFIG, entry["key"], vo, entry["value"], until=until)
    kind = next(kind.kind for kind in row_kinds() if kind.member == head)
    columns = {name: value for name, value in entry.items() if name not in ROW_MEMBERS}
    return named_line(kind, entry["name"], vo, columns, until=until)


def _unnamed(head: str, named: set[Place]) -> Iterator[Line]:
    if head == HEAD:
        there: Iterable[Place] = [override.place for override in Override.objects.all()]
    else:
        there = next(kind for kind in row_kinds() if kind.member == head).rows()
    for place in there:
        if place not in named:
            yield Line(place.component, place.name, remove=True, vo=place.vo, app=place.app, kind=place.kind)
