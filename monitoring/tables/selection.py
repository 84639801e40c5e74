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
PLACE = ("cursor", "limit", "live")
"""Parameters that every list has beside its filters."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The parameters of a list's address, each under its own name.

    `faults`: parameter -> what is wrong with it; then there are no rows. `tidy`: the address as it stands is the one to keep.
    """

    parameters: QueryDict
    names: tuple[str, ...]
    cursor: Cursor | None = None
    size: int = SIZE
    warnings: tuple[str, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)
    tidy: bool = True

    @property
    def filtered(self) -> bool:
        return any(self.parameters.get(name) for name in self.names)

    def address(self, **changes: Any) -> str:
        """The query string with some parameters changed, None = left out; without those that are empty or unknown."""
        pairs = [(k, v) for k in (*self.names, *PLACE) if k not in changes for v in self.parameters.getlist(k) if v]
        pairs += [(k, v) for k, v in changes.items() if v is not None]
        return f"?{urlencode(pairs)}" if pairs else ""

    @property
    def tidy_address(self) -> str:
        """The query string as it should stand: also with unknown parameters, so that the page warns of them."""
        pairs = [(name, value) for name, values in self.parameters.lists() for value in values if value]
        return f"?{urlencode(pairs)}" if pairs else ""


def read(sent: QueryDict, filters: type[ListFilter] | None = None, *, paged: bool = True) -> Selection:
    """Read the parameters of an address; `filters` says which the list has."""
    names = tuple(filters.base_filters) if filters else ()
    parameters = _renamed(sent, filters.aliases if filters else {})
    faults: dict[str, str] = {}
    cursor, size = None, SIZE
    if paged and (text := str(parameters.get("cursor", ""))):
        try:
            cursor = Cursor.read(text)
        except BadCursor as bad:
            faults["cursor"] = str(bad)
    if paged and (text := str(parameters.get("limit", ""))):
        if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST:
            size = int(text)
        else:
            faults["limit"] = f"a whole number from 1 to {MOST:,}"
    if parameters.get("live", "on") not in ("on", "off"):
        faults["live"] = "on or off"
    known = (*names, *PLACE) if paged else (*names, "live")
    # Tidy: nothing was renamed, parted or left blank; a form sends its empty fields too.
    tidy = sent == parameters and all(value for name in names for value in sent.getlist(name))
    return Selection(parameters, names, cursor, size, tuple(unknown(parameters, known)), faults, tidy)


def _renamed(sent: QueryDict, aliases: Mapping[str, str]) -> QueryDict:
    """The parameters under the names of the filters; states that are joined by commas stand for themselves."""
    parameters = QueryDict(mutable=True)
    for alias, values in sent.lists():
        name = aliases.get(alias, alias)
        parts = [part for value in values for part in (value.split(",") if name == "status" else [value])]
        parameters.setlistdefault(name).extend(parts)
    return parameters


def unknown(sent: QueryDict, known: Sequence[str]) -> list[str]:
    """A sentence for each parameter that is none of the known ones."""
    warnings = []
    for name in sent:
        if name not in known:
            near = nearest(name, known)
            hint = f" Did you mean “{near}”?" if near else ""
            warnings.append(f"The parameter “{name[:60]}” is not known and was ignored.{hint}")
    return warnings
