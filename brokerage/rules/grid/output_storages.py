"""The storages of a nucleus that take output, and which of them a task's output tokens mean (facts on queues 5.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

DISTRIBUTED = "ddd:"
"""Outputs with such a token stay where they are made."""


class OutputStorage(NamedTuple):
    """One endpoint: usable space in GB, and whether it can be read and written from elsewhere."""

    name: str
    type: str
    free_gb: float
    read_wan: bool
    write_wan: bool


def written(storages: Iterable[OutputStorage]) -> str:
    """The text of a column."""
    return json.dumps([list(storage) for storage in storages], separators=(",", ":"))


@lru_cache(maxsize=4096)
def listed(text: str) -> tuple[OutputStorage, ...]:
    """Read it; empty = none is known."""
    return tuple(OutputStorage(*entry) for entry in json.loads(text or "[]"))


def tokens_to_place(tokens: Iterable[str]) -> tuple[str, ...]:
    """The tokens that want a storage of the nucleus, each of several with commas between them; `dst:NAME` is NAME."""
    each = (token.strip() for several in tokens for token in several.split(","))
    return tuple(dict.fromkeys(t.removeprefix("dst:") for t in each if t and not t.startswith(DISTRIBUTED)))


def meant(storages: Sequence[OutputStorage], token: str) -> OutputStorage | None:
    """The endpoint of that name, else the first whose name has the form of the token (`*` for any text) or whose type it is."""
    kind = token.removeprefix("ATLAS")
    form = re.compile(".*".join(re.escape(part) for part in re.split(r"\*+", token)))
    exact = [s for s in storages if s.name == token]
    return next(iter(exact or [s for s in storages if form.fullmatch(s.name) or s.type == kind]), None)


def all_meant(text: str, tokens: Sequence[str]) -> tuple[OutputStorage, ...] | None:
    """The endpoints for all tokens; None where one of them has none."""
    storages = [meant(listed(text), token) for token in tokens]
    return None if None in storages else tuple(storage for storage in storages if storage is not None)
