"""What an address selects of a list: filters, place, size. What is not known is a warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from broker_site.foundation.kernel.registry import nearest
from monitoring.tables.filters import ListFilter
from monitoring.tables.keyset import BadCursor, Cursor

SIZE = 100
MOST = 1000
"""Largest page (reliability rule S21)."""
OWN = ("cursor", "limit", "live")
"""Parameters that every list has beside its filters."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The parameters of a list's address, each under its own name.

    `faults`: parameter -> what is wrong with it; then there are no rows. `tidy`: the address as it stands is the one to keep.
    """

    given: QueryDict
    names: tuple[str, ...]
    cursor: Cursor | None = None
    size: int = SIZE
    warnings: tuple[str, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)
    tidy: bool = True

    @property
    def filtered(self) -> bool:
        """Whether any filter is set."""
        return any(self.given.get(name) for name in self.names)

    def address(self, **changes: Any) -> str:
        """The query string with some parameters changed, None = left out; without those that are empty or unknown."""
        pairs = [(k, v) for k in (*self.names, *OWN) if k not in changes for v in self.given.getlist(k) if v]
        pairs += [(k, v) for k, v in changes.items() if v is not None]
        return f"?{urlencode(pairs)}" if pairs else ""

    @property
    def tidied(self) -> str:
        """The query string as it should stand: also what is not known, so that it is told."""
        pairs = [(name, value) for name, values in self.given.lists() for value in values if value]
        return f"?{urlencode(pairs)}" if pairs else ""


def read(sent: QueryDict, filters: type[ListFilter] | None = None, *, paged: bool = True) -> Selection:
    """Read the parameters of an address; `filters` says which the list has."""
    names = tuple(filters.base_filters) if filters else ()
    given = _renamed(sent, filters.aliases if filters else {})
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
    if given.get("live", "on") not in ("on", "off"):
        faults["live"] = "on or off"
    known = (*names, *OWN) if paged else (*names, "live")
    return Selection(given, names, cursor, size, tuple(unknown(given, known)), faults, tidy=_is_tidy(sent, given, names))


def _renamed(sent: QueryDict, aliases: Mapping[str, str]) -> QueryDict:
    """The parameters under the names of the filters; states that are joined by commas stand for themselves."""
    given = QueryDict(mutable=True)
    for name, values in sent.lists():
        own = aliases.get(name, name)
        given.setlistdefault(own).extend(part for value in values for part in (value.split(",") if own == "status" else [value]))
    return given


def _is_tidy(sent: QueryDict, given: QueryDict, names: Sequence[str]) -> bool:
    """Whether nothing was renamed, parted or left blank: a form sends its empty fields too."""
    return sent == given and all(value for name in names for value in sent.getlist(name))


def _size(text: str) -> tuple[int, str]:
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST:
        return int(text), ""
    return SIZE, f"a whole number from 1 to {MOST:,}"


def unknown(given: QueryDict, known: Sequence[str]) -> list[str]:
    """A sentence for each parameter that is none of the known ones."""
    said = []
    for name in given:
        if name not in known:
            near = nearest(name, known)
            said.append(
                f"The parameter “{name[:60]}” is not known and was ignored." + (f" Did you mean “{near}”?" if near else "")
            )
    return said
