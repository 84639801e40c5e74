"""Facets of a list: what its rows have in common, with counts; each a link that adds the filter, or takes it away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broker_site.foundation.kernel.filter_words import quoted
from monitoring.tables.selection import Selection

MOST = 12
"""Values of a facet that are shown, those with most."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value. `more`: there are more than `n`; `address`: of the list with this filter, or without it where it is `set`."""

    name: str
    shown: str
    n: int
    more: bool
    set: bool
    address: str


@dataclass(frozen=True, slots=True)
class Facet:
    """One filter with its values. `counts`: what is counted, in words; empty: nothing, it would take a look at every row."""

    name: str
    label: str
    counts: str
    values: Sequence[Value]
    others: int = 0


def choices(selection: Selection, name: str, label: str, values: Iterable[str]) -> Facet:
    """The facet of a filter whose rows are not counted: its choices, all of them."""
    named = tuple(values)
    return facet(selection, name, label, "", ((value, 1) for value in named), shown=len(named))


def facet(
    selection: Selection,
    name: str,
    label: str,
    counts: str,
    numbers: Iterable[tuple[str, int]],
    *,
    most: int = 0,
    nameless: str = "",
    shown: int = MOST,
) -> Facet:
    """The facet of a filter from (value, number) pairs. `most`: where counting stopped, 0: nowhere; `nameless`: what an empty
    value is called, which no filter asks for; `shown`: values at most.
    """
    told = [(value, n) for value, n in numbers if n and (value or nameless)]
    first = told[:shown]
    now = str(selection.parameters.get(name, ""))
    values = []
    for value, n in first:
        word = quoted(value) if value else ""
        is_set = bool(word) and now == word
        address = selection.address(cursor=None, **{name: None if is_set else word}) if word else ""
        values.append(Value(value, value or nameless, min(n, most) if most else n, bool(most) and n > most, is_set, address))
    return Facet(name, label, counts, values, len(told) - len(first))
