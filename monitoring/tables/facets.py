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
    """One value. `n`: None where nobody counted; `more`: there may be more than `n`; `address`: of the list with this filter, or
    without it where it is `set`.
    """

    name: str
    shown: str
    n: int | None
    more: bool
    set: bool
    address: str


@dataclass(frozen=True, slots=True)
class Facet:
    """One filter with its values. `counts`: what is counted, in words."""

    name: str
    label: str
    counts: str
    values: Sequence[Value]
    others: int = 0


def facet(
    selection: Selection,
    name: str,
    label: str,
    counts: str,
    numbers: Iterable[tuple[str, int | None]],
    *,
    most: int = 0,
    at_least: bool = False,
    nameless: str = "",
    shown: int = MOST,
    without: Sequence[str] = (),
) -> Facet:
    """The facet of a filter from (value, number) pairs, None: not counted. `most`: where counting stopped, 0: nowhere;
    `at_least`: not all rows were looked at; `nameless`: what an empty value is called, which no filter asks for;
    `shown`: values at most; `without`: filters that it is not known together with.
    """
    told = [(value, n) for value, n in numbers if n != 0 and (value or nameless)]
    first = told[:shown]
    now = str(selection.parameters.get(name, ""))
    values, left = [], dict.fromkeys(("cursor", *without))
    for value, n in first:
        word = quoted(value) if value else ""
        is_set = bool(word) and now == word
        address = selection.address(**left, **{name: None if is_set else word}) if word else ""
        over = n is not None and 0 < most < n
        values.append(Value(value, value or nameless, most if over else n, over or (at_least and n is not None), is_set, address))
    return Facet(name, label, counts, values, len(told) - len(first))
