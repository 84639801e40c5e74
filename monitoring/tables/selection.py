"""What an address selects of a list: filters, place, size. What is not known is a warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlencode

import django_filters
from django.http import QueryDict

from monitoring.tables.keyset import BadCursor, Cursor

SIZE = 100
MOST = 1000
"""Largest page (reliability rule S21)."""
OWN = ("cursor", "limit", "live")
"""Parameters that every list has beside its filters."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The parameters of a list's address. `faults`: parameter -> what is wrong with it; then there are no rows."""

    given: QueryDict
    names: tuple[str, ...]
    cursor: Cursor | None = None
    size: int = SIZE
    live: bool = True
    warnings: tuple[str, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)

    @property
    def filtered(self) -> bool:
        """Whether any filter is set."""
        return any(self.given.get(name) for name in self.names)

    def address(self, **changes: Any) -> str:
        """The query string with some parameters changed, None = left out; without those that are empty or unknown."""
        pairs = [(k, v) for k in (*self.names, *OWN) if k not in changes for v in self.given.getlist(k) if v]
        pairs += [(k, v) for k, v in changes.items() if v is not None]
        return f"?{urlencode(pairs)}" if pairs else ""


def read(given: QueryDict, filters: type[django_filters.FilterSet] | None = None, *, paged: bool = True) -> Selection:
    """Read the parameters of an address; `filters` says which the list has."""
    names = tuple(filters.base_filters) if filters else ()
    faults: dict[str, str] = {}
    cursor, size = None, SIZE
    if paged and (text := given.get("cursor")):
        try:
            cursor = Cursor.read(str(text))
        except BadCursor as bad:
            faults["cursor"] = str(bad)
    if paged and (text := given.get("limit")):
        size, problem = _size(str(text))
        faults |= {"limit": problem} if problem else {}
    live = given.get("live", "on")
    if live not in ("on", "off"):
        faults["live"] = "on or off"
    known = (*names, *OWN) if paged else (*names, "live")
    return Selection(given, names, cursor, size, live == "on", tuple(_unknown(given, known)), faults)


def _size(text: str) -> tuple[int, str]:
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST:
        return int(text), ""
    return SIZE, f"a whole number from 1 to {MOST:,}"


def _unknown(given: QueryDict, known: Sequence[str]) -> list[str]:
    said = []
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            said.append(
                f"The parameter “{name[:60]}” is not known and was ignored." + (f" Did you mean “{near[0]}”?" if near else "")
            )
    return said
