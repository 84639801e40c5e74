"""Drafts of changes: a document of what shall hold, and the lines that lead there. Pure.

The document is that of `manage.py config export`: `overrides` of keys, `shares` and `work_queues`, an entry a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from broker_site.client.errors import Unusable

Entry = Mapping[str, Any]
Line = Mapping[str, Any]
LISTS: Mapping[str, tuple[str, str]] = {
    "overrides": ("config", "key"), "shares": ("share", "name"), "work_queues": ("work_queue", "name"),
}  # fmt: skip
"""List of a document -> kind of its lines, and the member that names an entry."""
_TOLD = frozenset({"name", "vo", "until", "revision", "who"})
"""What the server tells of a row beside its columns."""


def override_entries(keys: Iterable[Entry]) -> list[Entry]:
    """The overrides among the keys of the configuration."""
    found = []
    for key in keys:
        front = key["key"][: len(key["key"]) - len(key["name"])]
        for each in key["overrides"]:
            of_vo, until = _some(vo=each["vo"]), _some(until=_time(each["until"]))
            found.append({"key": front + each["name"], **of_vo, "value": each["value"], **until})
    return sorted(found, key=lambda entry: (entry["key"], entry.get("vo", "")))


def row_entries(rows: Iterable[Entry]) -> list[Entry]:
    """Rows of shares or work queues with their columns."""
    return [
        {
            "name": row["name"],
            **_some(vo=row["vo"]),
            **{name: _plain(value) for name, value in row.items() if name not in _TOLD},
            **_some(until=_time(row["until"])),
        }
        for row in rows
    ]


def text_of(document: Mapping[str, Sequence[Entry]]) -> str:
    """The document with an entry a line, so that it can be read, edited and compared."""
    return "{" + ",\n".join(_list(name, entries) for name, entries in document.items()) + "}\n"


def read(text: str, known: Iterable[str] = LISTS) -> dict[str, list[Entry]]:
    """The document that a text holds. Raises Unusable for what is none; values are for the server to judge.

    Whoever takes lines out or adds some need not mind the commas at their ends: no text of JSON holds a line end.
    """
    mended = re.sub(r",(\s*\n\s*\])", r"\1", re.sub(r"\}(\s*\n\s*)\{", r"},\1{", text))
    try:
        document = json.loads(mended)
    except ValueError as problem:
        raise Unusable("This is no JSON", str(problem)) from None
    return checked(document, known)


def is_json(text: str) -> bool:
    """Whether a draft is JSON; else it is YAML, which the server reads."""
    return text.lstrip("\ufeff \t\r\n")[:1] in ("", "{", "[")


def checked(document: Any, known: Iterable[str] = LISTS) -> dict[str, list[Entry]]:
    """The document, where it has the form of a draft. Raises Unusable."""
    names = tuple(known)
    if not isinstance(document, dict) or not document or not set(document) <= set(names):
        raise Unusable("Not a draft", f"expected is an object with lists {', '.join(names)}, or some of them")
    for name, entries in document.items():
        member = LISTS[name][1]
        for number, entry in enumerate(entries if isinstance(entries, list) else [None]):
            if not isinstance(entry, dict) or not isinstance(entry.get(member), str):
                raise Unusable("Not a draft", f"{name}[{number}] is to be an object with a text {member}")
            if not isinstance(entry.get("vo", ""), str):
                raise Unusable("Not a draft", f"{name}[{number}] ({entry[member][:60]}) has a vo that is no text")
            if name == "overrides" and "value" not in entry:
                raise Unusable("Not a draft", f"{name}[{number}] ({entry[member][:60]}) has no value")
    return document


def lines_between(
    standing: Mapping[str, Sequence[Entry]], wanted: Mapping[str, Sequence[Entry]], only: bool = False
) -> list[Line]:
    """The lines that lead from one document to the other; `only`: what the lists of `wanted` do not name is removed."""
    lines: list[Line] = []
    for name, entries in wanted.items():
        kind, member = LISTS[name]
        there = {(entry[member], entry.get("vo", "")): entry for entry in standing.get(name, ())}
        lines += [_line(kind, member, e) for e in entries if there.get((e[member], e.get("vo", ""))) != e]
        if only:
            gone = there.keys() - {(entry[member], entry.get("vo", "")) for entry in entries}
            lines += [{"kind": kind, "key": key, "vo": vo, "value": None} for key, vo in there if (key, vo) in gone]
    return lines


def place(line: Line) -> str:
    """What a line is about, in words."""
    kind = "" if line["kind"] == "config" or line["key"].startswith(f"{_words(line['kind'])} ") else f"{_words(line['kind'])} "
    return f"{kind}{line['key']}{' for ' + line['vo'] if line['vo'] else ''}"


def differences(line: Line) -> Iterator[str]:
    """What a line of a dry run or of a change set changes, column by column of a row."""
    before, after = line["before"], line["after"]
    if line["kind"] == "config":
        yield f"{_said(before)} -> {_said(after)}"
    elif after is None:
        yield "removed"
    else:
        old, new = _columns(before), _columns(after)
        for name, value in new.items():
            if before is None:
                if value not in ("", None, False):
                    yield f"{name} {_said(value)} (new)"
            elif old.get(name) != value:
                yield f"{name} {_said(old.get(name))} -> {_said(value)}"
    if line.get("until") != line.get("until_before"):
        yield f"ends {line['until'] or 'no more by itself'}"


def _line(kind: str, member: str, entry: Entry) -> Line:
    if kind == "config":
        value = entry["value"]
    else:
        value = {name: each for name, each in entry.items() if name not in ("name", "vo", "until")}
    return {"kind": kind, "key": entry[member], "vo": entry.get("vo", ""), "value": value, "until": entry.get("until")}


def _list(name: str, entries: Sequence[Entry]) -> str:
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    return f'"{name}": [\n' + ",\n".join(lines) + "\n]" if lines else f'"{name}": []'


def _some(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value}


def _time(text: str | None) -> str | None:
    """As `manage.py config export` writes it."""
    return f"{text[:-1]}+00:00" if text and text.endswith("Z") else text


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _columns(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _said(value: Any) -> str:
    if value is None:
        return "none"
    return (value if isinstance(value, str) else json.dumps(value)) or "empty"


def _words(kind: str) -> str:
    return kind.replace("_", " ")
