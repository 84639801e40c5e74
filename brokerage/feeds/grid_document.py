"""Our own grid document as a file: strict JSON, names that stand twice told with their place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from broker_site.foundation.kernel.verdict import Problem
from brokerage.rules.grid.document import BadGrid

LARGEST = 100_000_000
"""Bytes of a document."""


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its names stood twice."""

    twice: tuple[str, ...] = ()


def load_document(file: Path) -> Any:
    """The JSON data of a file, which other readers than ours look at too. Raises BadGrid; OSError where it cannot be read."""
    return parse_document(read_bytes(file))


def read_bytes(file: Path) -> bytes:
    """The bytes of a file. Raises BadGrid for a huge one, OSError where it cannot be read."""
    if file.stat().st_size > LARGEST:
        raise BadGrid([Problem("", "length", f"more than {LARGEST} bytes")])
    return file.read_bytes()


def parse_document(text: bytes) -> Any:
    """The JSON data of a text. Raises BadGrid for what is no JSON, and for names that stand twice."""
    try:
        document = json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise BadGrid([Problem("", "json", f"not UTF-8: byte {error.start}")]) from None
    except json.JSONDecodeError as error:
        raise BadGrid([Problem("", "json", f"{error.msg}: line {error.lineno} column {error.colno}")]) from None
    except (ValueError, RecursionError) as error:
        raise BadGrid([Problem("", "json", str(error)[:200])]) from None
    if doubles := list(_doubles(document)):
        raise BadGrid(doubles)
    return document


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        made.twice = tuple(dict.fromkeys(name for name, _ in pairs if name in seen or seen.add(name)))  # type: ignore[func-returns-value]
    return made


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _doubles(value: Any, path: str = "") -> Iterator[Problem]:
    """A problem for each name that stands twice in one object; the parser bounds the depth."""
    if isinstance(value, _Object):
        for name in value.twice:
            yield Problem(f"{path}.{name}".lstrip("."), "duplicate", "the name stands twice in one object")
        for name, inner in value.items():
            yield from _doubles(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _doubles(inner, f"{path}[{position}]")
