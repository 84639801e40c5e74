"""Strict reading of JSON bodies: bounded in size, depth, width and numbers, and free of what PostgreSQL cannot store.

Every fault is a 4xx with the place or the name of the fault. Not here: what the values mean (serializers, rules).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from django.http import HttpRequest, UnreadablePostError

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel.verdict import Problem

BODY_LIMIT = 1_000_000
"""Bytes of an ordinary body."""
TASK_BODY_LIMIT = 5_000_000
"""Bytes of a body with task parameters."""
MAX_DEPTH = 50
"""Nesting of lists and objects."""
MAX_ITEMS = 10_000
"""Members of one list or object."""
MAX_TOKENS = 250_000
"""Strings, brackets and commas of one body: bounds the time and memory that its wide parts can take."""
_INT64 = 1 << 63
_LONGEST_NUMBER = 400

# A whole string (its escapes included, possessively, so that no input makes the search go back), or a mark of structure.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_TOKEN = re.compile(_STRING.pattern + rb"|[\[\]{},]", re.DOTALL)
_MARKS = b"[]{},"
_NO_MARKS = bytes(set(range(256)) - set(_MARKS))
_STEP = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1), ord(","): 0}
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def read_json(request: HttpRequest, limit: int = BODY_LIMIT) -> Any:
    """The JSON value in the body of a request of at most `limit` bytes.

    Refused: 415 for another content type, 413 for a longer body, 400 for a broken one.
    """
    if request.content_type != "application/json":
        raise Refused(415, "Wrong content type", "Send application/json.")
    return decode(read_stream(request, request.META.get("CONTENT_LENGTH"), limit))


def read_object(request: HttpRequest) -> dict[str, Any]:
    """As `read_json`, for views whose body is an object."""
    value = read_json(request)
    if not isinstance(value, dict):
        raise _broken("The body must be a JSON object.")
    return value


def read_stream(stream: Any, declared: object, limit: int) -> bytes:
    """At most `limit` bytes from an open body; `declared` is the Content-Length header. Refused: 413, or 400 if the body
    breaks off.
    """
    try:
        length = int(str(declared or 0))
    except ValueError:
        raise _broken("Content-Length is not a number.") from None
    if length > limit:
        raise _too_large(limit)
    try:
        body: bytes = stream.read(limit + 1)
    except UnreadablePostError:
        raise _broken("The body broke off.") from None
    if len(body) > limit:
        raise _too_large(limit)
    return body


def decode(body: bytes) -> Any:
    """The value of a JSON text; Refused(400) for whatever is not strict JSON within the limits of this module."""
    if b"\x00" in body:
        raise _broken("The body holds a NUL character.")
    try:
        text = body.decode()
    except UnicodeDecodeError as exc:
        raise _broken(f"The body is not UTF-8: byte {exc.start}.") from None
    _check_structure(body)
    try:
        value = (_CAREFUL if _LONG_NUMBER in body.translate(_DIGITS) else _PLAIN).decode(text)
    except json.JSONDecodeError as exc:
        raise _broken(f"{exc.msg}: line {exc.lineno} column {exc.colno} (character {exc.pos}).") from None
    # Only an escape can bring in what UTF-8 refuses, and only many commas a long list: most bodies need no second look.
    if b"\\u" in body or body.count(b",") >= MAX_ITEMS:
        _check_values(value)
    return value


def _check_structure(body: bytes) -> None:
    """Refuse deep or very wide texts before the parser sees them; the parser recurses, this does not."""
    openings = body.count(b"[") + body.count(b"{")
    if openings <= MAX_DEPTH and body.count(b",") + body.count(b'"') <= MAX_ITEMS:
        return
    rest, strings = _STRING.subn(b"", body, count=MAX_TOKENS)
    marks = rest.translate(None, _NO_MARKS)
    if strings + len(marks) < MAX_TOKENS and max(accumulate(map(_STEP.__getitem__, marks)), default=0) <= MAX_DEPTH:
        return
    # Something is wrong: where it is, and what of both comes first.
    depth = 0
    for count, match in enumerate(_TOKEN.finditer(body)):
        mark = body[match.start()]
        if mark in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _broken(f"Nested deeper than {MAX_DEPTH} levels at byte {match.start()}.")
        elif mark in b"]}":
            depth -= 1
        if count > MAX_TOKENS:
            raise _broken(f"More than {MAX_TOKENS} values and marks.")


def _check_values(value: Any) -> None:
    for name, item in _items(value):
        if isinstance(item, str):
            if _UNSTORABLE.search(item):
                raise _fault(name, "characters", "A text holds a NUL character or half of a surrogate pair")
        elif len(item) > MAX_ITEMS:
            raise _fault(name, "max_length", f"A list or object has more than {MAX_ITEMS} members")


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Every text, key, list and object within, each with the name of the member in which it is, without recursion."""
    stack = [("", value)]
    while stack:
        name, item = stack.pop()
        if isinstance(item, dict):
            yield name, item
            yield from ((name, key) for key in item)
            stack.extend(item.items())
        elif isinstance(item, list):
            yield name, item
            stack.extend((name, each) for each in item)
        elif isinstance(item, str):
            yield name, item


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _broken(f"The name {twice[:100]!a} stands twice in one object.")
    return members


def _integer(text: str) -> int:
    number = int(text) if len(text) <= 20 else _INT64
    if not -_INT64 <= number < _INT64:
        raise _broken(f"The integer {text[:30]} does not fit into 64 bits.")
    return number


def _float(text: str) -> float:
    number = float(text) if len(text) <= _LONGEST_NUMBER else math.inf
    if math.isinf(number):
        raise _broken(f"The number {text[:30]} is out of range.")
    return number


def _constant(text: str) -> float:
    raise _broken(f"{text} is not JSON.")


def _fault(name: str, rule: str, told: str) -> Refused:
    """What is wrong with the member of that name; empty: with the body itself. A name that cannot be told is told as ASCII."""
    if not name:
        return _broken(f"{told}.")
    shown = name[:100] if not _UNSTORABLE.search(name[:100]) else ascii(name[:100])
    return Refused(400, "Malformed body", f"{told}: {shown}.", [Problem(shown, rule, told)])


def _broken(detail: str) -> Refused:
    return Refused(400, "Malformed body", detail)


def _too_large(limit: int) -> Refused:
    return Refused(413, "Body too large", f"At most {limit} bytes.")


_DIGITS, _LONG_NUMBER = bytes.maketrans(b"123456789", b"0" * 9), b"0" * 19
_PLAIN = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
_CAREFUL = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)
"""Integers with fewer digits fit into 64 bits; a body with none longer, as of nearly all, is read in two thirds of the time."""
