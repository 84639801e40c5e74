"""The filters of a list as its page offers them: fields with their values, chips of what is set, and words that may be meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broker_site.foundation.kernel.filter_words import Wanted, Word
from broker_site.foundation.rest.filtering import AgeFilter, AnyOf, ListFilter, NameFilter, NumberFilter, TimeFilter
from monitoring.tables.selection import Selection

ANY = "*"
HINTS = {AgeFilter: "2h, >7d", TimeFilter: "-2h, 2026-11-27", NumberFilter: ">5, 1..9"}


@dataclass(frozen=True, slots=True)
class FilterField:
    """One filter. `choices`: each with whether it is wanted; empty where it is typed, as what boxes cannot show is."""

    name: str
    label: str
    value: str
    hint: str
    help: str
    fault: bool
    choices: Sequence[tuple[str, bool]] = ()


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is set, and the address of the list without it."""

    label: str
    text: str
    without: str


@dataclass(frozen=True, slots=True)
class FilterForm:
    """The fields that are always seen, the others, and what is set."""

    first: Sequence[FilterField]
    more: Sequence[FilterField]
    chips: Sequence[Chip]

    def label_of(self, name: str) -> str:
        """What the page calls a parameter of the address: its filter's label, or its own name."""
        return next((field.label for field in (*self.first, *self.more) if field.name == name), name)

    @property
    def more_set(self) -> int:
        return sum(bool(field.value) for field in self.more)


def form_of(filters: ListFilter, selection: Selection, first: Sequence[str]) -> FilterForm:
    """The form of a list for what its address says."""
    fields = {name: _field(filters, name, str(selection.parameters.get(name, ""))) for name in filters.filters}
    chips = [
        Chip(field.label, field.value, selection.address(cursor=None, **{name: None}))
        for name, field in fields.items()
        if field.value
    ]
    return FilterForm([fields[name] for name in first], [field for name, field in fields.items() if name not in first], chips)


def _field(filters: ListFilter, name: str, value: str) -> FilterField:
    declared = filters.filters[name]
    label = declared.label or name
    fault = name in filters.form.errors if filters.is_bound else False
    hint = next((hint for kind, hint in HINTS.items() if isinstance(declared, kind)), "")
    choices: Sequence[tuple[str, bool]] = ()
    if isinstance(declared, AnyOf):
        wanted = filters.form.cleaned_data.get(name) if filters.is_bound and not fault and filters.form.is_valid() else None
        chosen = set(wanted.any_of) if isinstance(wanted, Wanted) and not wanted.none_of else set()
        if not value or chosen:
            choices = [(choice, choice in chosen) for choice in declared.choices]
    return FilterField(name, str(label), value, hint, str(declared.extra.get("help_text", "")), fault, choices)


def wider(filters: ListFilter, selection: Selection) -> str:
    """Where a text stood for itself and found nothing: the same list with `*` around it."""
    said = filters.form.cleaned_data
    anywhere = {
        name: f"{ANY}{wanted.any_of[0].text}{ANY}"
        for name, wanted in said.items()
        if isinstance(filters.filters[name], NameFilter) and name != "vo" and wanted and _plain(wanted)
    }
    return selection.address(cursor=None, **anywhere) if anywhere else ""


def _plain(wanted: Wanted[Any]) -> bool:
    """Whether one plain text is wanted and nothing else."""
    (*rest, word) = wanted.any_of or (Word("", quoted=True),)
    return not rest and not wanted.none_of and isinstance(word, Word) and not word.wild and not word.quoted
