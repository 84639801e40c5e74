"""What an address selects of a list: filters, place, size. What is not known is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.filtering import ListFilter
from broker_site.foundation.rest.keyset import BadCursor, Cursor

SIZE = 50
MOST = 1000
"""Largest page (reliability rule S21)."""
PLACE = ("cursor", "limit", "live")
ALSO = {"page_size": "limit"}
"""Other names of these."""
COMMAS = ","
"""Signs that an address needs no code for."""
"""Parameters that every list has beside its filters."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a parameter: the rule that it breaks, and in words."""

    rule: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Selection:
    """The parameters of a list's address, each under its own name.

    `faults`: parameter -> what is wrong with it; then there are no rows. `unknown`: one for each that is not known.
    `tidy`: the address as it stands is the one to keep.
    """

    parameters: QueryDict
    names: tuple[str, ...]
    cursor: Cursor | None = None
    size: int = SIZE
    unknown: Sequence[Problem] = ()
    faults: Mapping[str, Fault] = field(default_factory=dict)
    tidy: bool = True
    also: tuple[str, ...] = ()

    @property
    def filtered(self) -> bool:
        return any(self.parameters.get(name) for name in self.names)

    def address(self, **changes: Any) -> str:
        """The query string with some parameters changed, None = left out; without those that are empty or unknown."""
        said = [k for k in (*self.names, *self.also, *PLACE) if k in self.parameters and k not in changes]
        pairs = [(k, v) for k in said for v in self.parameters.getlist(k) if v]
        pairs += [(k, v) for k, v in changes.items() if v is not None]
        return f"?{urlencode(pairs, safe=COMMAS)}" if pairs else ""

    @property
    def tidy_address(self) -> str:
        """The query string as it should stand: also with unknown parameters, so that the page warns of them."""
        pairs = [(name, value) for name, values in self.parameters.lists() for value in values if value]
        return f"?{urlencode(pairs, safe=COMMAS)}" if pairs else ""


def read(
    sent: QueryDict,
    filters: type[ListFilter] | None = None,
    *,
    table: str = "",
    paged: bool = True,
    also: Sequence[str] = (),
) -> Selection:
    """Read the parameters of an address; `filters`: those of the list, `table`: what it lists, `also`: what it knows beside."""
    names = tuple(filters.base_filters) if filters else ()
    parameters = _renamed(sent, filters)
    faults: dict[str, Fault] = {}
    cursor, size = None, SIZE
    if paged and (text := str(parameters.get("cursor", ""))):
        try:
            cursor = Cursor.read(text, table)
        except BadCursor as bad:
            faults["cursor"] = Fault(bad.rule, str(bad))
    if paged and (text := str(parameters.get("limit", ""))):
        if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST:
            size = int(text)
        else:
            faults["limit"] = Fault("range", f"a whole number from 1 to {MOST:,}")
    if (parameters.get("live") or "on") not in ("on", "off"):
        faults["live"] = Fault("one_of", "on or off")
    known = (*names, *also, *(PLACE if paged else ("live",)))
    # Tidy: nothing was renamed, joined or left blank; a form sends its empty fields too.
    tidy = sent == parameters and all(value for name in names for value in sent.getlist(name))
    return Selection(parameters, names, cursor, size, not_known(parameters, known), faults, tidy, tuple(also))


def faults_of(selection: Selection, filters: ListFilter) -> dict[str, Fault]:
    """What is wrong with place, size and filters."""
    told = {
        name: Fault(errors[0].code or "value", " ".join(m for error in errors for m in error.messages))
        for name, errors in filters.form.errors.as_data().items()
    }
    return {**selection.faults, **told}


def _renamed(sent: QueryDict, filters: type[ListFilter] | None) -> QueryDict:
    """The parameters under the names of the filters."""
    parameters = filters.renamed(sent) if filters else sent.copy()
    for alias, name in ALSO.items():
        if alias in parameters:
            parameters.setlistdefault(name).extend(parameters.pop(alias))
    return parameters


def _unknown(sent: QueryDict, known: Sequence[str]) -> dict[str, str]:
    return {name: nearest(name, known) or "" for name in sent if name not in known}


def unknown(sent: QueryDict, known: Sequence[str]) -> list[str]:
    """A sentence for each parameter that is none of the known ones."""
    warnings = []
    for name, near in _unknown(sent, known).items():
        hint = f" Did you mean “{near}”?" if near else ""
        warnings.append(f"The parameter “{name[:60]}” is not known and was ignored.{hint}")
    return warnings


def not_known(sent: QueryDict, known: Sequence[str]) -> list[Problem]:
    """A fault for each parameter that is none of the known ones."""
    return [
        Problem(name[:100], "unknown", "not a filter of this list" + (f"; the nearest one is {near}" if near else ""))
        for name, near in _unknown(sent, known).items()
    ]
