"""The bytes of a document of any kind, turned into what the grid tables shall hold: strict JSON, names that stand twice refused.

Not here: where the bytes come from (`fetch`), and the rules (`brokerage.rules.grid.update`, `cric`, `cric_metrics`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from broker_site.foundation.kernel.verdict import Problem
from brokerage.rules.grid.attributes import BadGrid, GridNames, moment
from brokerage.rules.grid.cric import read_queues, read_sites, read_storages, recognised
from brokerage.rules.grid.cric_metrics import read_closeness, read_network, read_software
from brokerage.rules.grid.document import without_ours
from brokerage.rules.grid.update import GridUpdate, read_update

LARGEST = 100_000_000
"""Bytes of a document."""


def parse(text: bytes) -> tuple[str, Any]:
    """Kind and JSON data of a document. Raises BadGrid; rules json, duplicate, kind."""
    document = parse_document(text)
    kind = recognised(document)
    if not kind and isinstance(document, Mapping) and "format" in document:
        kind = "grid"
    return kind or "grid", document


def wanted_of(kind: str, document: Any, known: GridNames, now: datetime) -> GridUpdate:
    """What a document of a kind says. Raises BadGrid, also where it is of another kind."""
    looks_like = recognised(document)
    if looks_like and looks_like != kind:
        raise BadGrid([Problem("", "kind", f"expected a document of the kind {kind}, this looks like {looks_like}")])
    match kind:
        case "cric-sites":
            return read_sites(document)
        case "cric-storages":
            return read_storages(document, known)
        case "cric-queues":
            return read_queues(document, known)
        case "software":
            return read_software(document, known)
        case "network":
            return read_network(document, known, now)
        case "closeness":
            return read_closeness(document, known)
    return read_update(document)


def time_of(document: Any) -> datetime | None:
    """Of when our own document says that it is."""
    if not isinstance(document, Mapping) or not isinstance(document.get("now"), str) or not document["now"]:
        return None
    try:
        return moment(document["now"])
    except ValueError:
        return None


def from_afar(wanted: GridUpdate) -> GridUpdate:
    """What a feed may say: no directory of ours, no process on our machine."""
    return replace(
        wanted,
        storages=None if wanted.storages is None else [without_ours(entry) for entry in wanted.storages],
        queues=None if wanted.queues is None else [without_ours(queue) for queue in wanted.queues],
    )


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
