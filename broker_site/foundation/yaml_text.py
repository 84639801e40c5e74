"""YAML as people write it, read as the JSON values that it says and nothing more; and rows written so that people can read them.

Only the events of the parser are used, never its constructors: no tag makes an object. Anchors and aliases, tags, a name that
stands twice and a second document are refused, with the line; so are texts too long, too deep or too wide.

A word without quotes is null, true, false or a number as JSON writes them, and else the text that stands there: `on`, `no` and
`2026-01-01` stay what was typed. Where `as_written` names the members that lead there, a number stays a text, too: `1e3`, `1.50`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

LARGEST = 2_000_000
"""Characters of a text that are read."""
MAX_DEPTH, MAX_ITEMS, MAX_EVENTS = 50, 10_000, 250_000
LONGEST_NAME = 200
"""Characters of a member's name: it stands in what is told of faults."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: Mapping[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_LONGEST_NUMBER = 400
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+-]+)*")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+-]+)*")
_READ_OTHERWISE = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""Words that some reader takes for no text: they are written in quotes."""
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


class YamlFault(ValueError):
    """What is wrong with a text, in which line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a text, and in which line each entry of it stands: `overrides[3].value` -> 12."""

    value: Any
    lines: Mapping[str, int]


@dataclass(slots=True)
class _Open:
    """A list or an object that is being read. `path`: where it stands; `members`: the names that lead there."""

    value: Any
    path: str
    members: tuple[str, ...]
    name: str | None = None


@dataclass(slots=True)
class _Reading:
    as_written: Collection[tuple[str, ...]]
    lines: dict[str, int] = field(default_factory=dict)
    stack: list[_Open] = field(default_factory=list)
    root: Any = None
    documents: int = 0

    def take(self, event: yaml.Event) -> None:
        line = _line(event)
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise YamlFault(line, "a second document begins; there is to be one")
            case yaml.AliasEvent():
                raise YamlFault(line, "aliases (*name) are not read: write it out")
            case yaml.NodeEvent(anchor=str()):
                raise YamlFault(line, "anchors (&name) are not read")
            case yaml.ScalarEvent(tag=str()) | yaml.CollectionStartEvent(tag=str()):
                raise YamlFault(line, "tags (!name) are not read")
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.SequenceStartEvent():
                self._open([], line)
            case yaml.MappingStartEvent():
                self._open({}, line)
            case yaml.CollectionEndEvent():
                self.stack.pop()
            case _:
                pass

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        text = event.value
        if _UNSTORABLE.search(text):
            raise YamlFault(line, "a text holds a NUL character or half of a surrogate pair")
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.value, dict) and top.name is None:
            if text in top.value:
                raise YamlFault(line, f"the name {text[:60]!r} stands twice in one object")
            if len(text) > LONGEST_NAME:
                raise YamlFault(line, f"a name has more than {LONGEST_NAME} characters")
            top.name = text
        elif event.implicit[0]:
            of_object = top is not None and top.name is not None
            self._put(_plain(text, line, as_text=of_object and self._members() in self.as_written), line)
        else:
            self._put(text, line)

    def _open(self, value: Any, line: int) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise YamlFault(line, f"nested deeper than {MAX_DEPTH} levels")
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.value, dict) and top.name is None:
            raise YamlFault(line, "the name of a member is to be a text")
        members = self._members()
        self.stack.append(_Open(value, self._put(value, line), members))

    def _members(self) -> tuple[str, ...]:
        """The names that lead to what comes next."""
        if not self.stack:
            return ()
        top = self.stack[-1]
        return top.members if top.name is None else (*top.members, top.name)

    def _put(self, value: Any, line: int) -> str:
        """Into the list or object that is open; the answer is where that is."""
        if not self.stack:
            self.root = value
            return ""
        top = self.stack[-1]
        if len(top.value) >= MAX_ITEMS:
            raise YamlFault(line, f"a list or object has more than {MAX_ITEMS} members")
        if isinstance(top.value, list):
            path = f"{top.path}[{len(top.value)}]"
            top.value.append(value)
        else:
            name = top.name or ""
            path = f"{top.path}.{name}" if top.path else name
            top.value[name] = value
            top.name = None
        if path.count(".") + path.count("[") <= 2:  # deeper ones are told with what they are in
            self.lines[path] = line
        return path


def read_yaml(text: str, as_written: Collection[tuple[str, ...]] = ()) -> Document:
    """The document that a text is. YamlFault with the line of the first fault.

    as_written: names that lead to a member (lists left out), of which a word without quotes is the text that stands there.
    """
    if len(text) > LARGEST:
        raise YamlFault(1, f"{len(text)} characters are more than the {LARGEST} that are read")
    reading = _Reading(as_written)
    try:
        for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
            if count > MAX_EVENTS:
                raise YamlFault(_line(event), f"more than {MAX_EVENTS} values and marks")
            reading.take(event)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        raise YamlFault(mark.line + 1 if mark else 1, " ".join(filter(None, (fault.context, fault.problem)))) from None
    except (yaml.YAMLError, UnicodeError) as fault:
        position = getattr(fault, "position", 0)
        line = text.count("\n", 0, position if isinstance(position, int) else 0) + 1
        raise YamlFault(line, f"a character that no YAML may have ({getattr(fault, 'reason', 'not allowed')})") from None
    return Document(reading.root, reading.lines)


def written(lists: Mapping[str, Sequence[Mapping[str, Any]]], as_written: Collection[tuple[str, ...]] = ()) -> str:
    """Lists of rows of texts, numbers, flags and nulls as block-style YAML: one text for the same rows, a member a line."""
    return "".join(f"{line}\n" for name, rows in lists.items() for line in _list(name, rows, as_written))


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _list(name: str, rows: Sequence[Mapping[str, Any]], as_written: Collection[tuple[str, ...]]) -> Iterator[str]:
    yield f"{name}:" if rows else f"{name}: []"
    for row in rows:
        for number, (member, value) in enumerate(row.items()):
            yield f"{'  ' if number else '- '}{member}: {_word(value, (name, member) in as_written)}"


def _word(value: Any, as_written: bool) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    plain = (_PLAIN_VALUE if as_written else _PLAIN).fullmatch(value)
    if plain and value.lower() not in (_READ_OTHERWISE - {"true", "false"} if as_written else _READ_OTHERWISE):
        return value
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _plain(text: str, line: int, *, as_text: bool) -> Any:
    """A word without quotes."""
    if text in _WORDS and not (as_text and text in ("true", "false")):
        return _WORDS[text]
    found = None if as_text or len(text) > _LONGEST_NUMBER else _NUMBER.fullmatch(text)
    if found is None:
        return text
    if found[1] is None and found[2] is None:
        number = int(text)
        if not -(1 << 63) <= number < 1 << 63:
            raise YamlFault(line, f"the integer {text[:30]} does not fit into 64 bits")
        return number
    real = float(text)
    if math.isinf(real):
        raise YamlFault(line, f"the number {text[:30]} is out of range")
    return real
