"""Filters of lists by the query string: only those that a list names, each with its type; anything else is refused (S18).

A list declares its filters once, as a ListFilter: page, JSON, CSV and REST read them by it, with the words of `filter_words`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Generic, TypeVar

import django_filters
from django import forms
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.filter_words import (
    LENGTHS,
    TIMES,
    Bounds,
    Unreadable,
    Wanted,
    Word,
    ages,
    numbers,
    texts,
    times,
)  # fmt: skip
from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.paging import LARGEST_ID, NewestFirst
from broker_site.foundation.sql.wildcards import named

NOT_FILTERS = (NewestFirst.page_size_query_param, NewestFirst.cursor_query_param)
LONGEST = 8_000
"""Characters of a filter."""
LONGEST_WORD = 256
"""Characters of a word that a view reads by itself."""
Part = TypeVar("Part")
Condition = Callable[[Any, str], Q]
"""Makes the condition that one part of a filter holds, in the database of this alias."""


class StrictBackend(DjangoFilterBackend):
    """Refuses a name that is no filter of the list, so that a misspelt one does not show everything."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        filterset = self.get_filterset_class(view, queryset)
        names = (*filterset.base_filters, *getattr(filterset, "aliases", ())) if filterset else ()
        known = [*names, *NOT_FILTERS, *getattr(view, "further_parameters", ())]
        wrong = {name[:100]: [_unknown(name, known)] for name in request.query_params if name not in known}
        if wrong:
            raise ValidationError(wrong)
        filtered: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return filtered

    def get_filterset_kwargs(self, request: Request, queryset: QuerySet[Any], view: Any) -> dict[str, Any]:
        """With the filters under their own names; whether they narrow the list is left with the view, for its pages."""
        kwargs: dict[str, Any] = super().get_filterset_kwargs(request, queryset, view)
        filterset = self.get_filterset_class(view, queryset)
        if issubclass(filterset, ListFilter):
            kwargs["data"] = filterset.renamed(request.query_params)
            view.narrow = getattr(view, "narrow", False) or filterset(**kwargs).narrows
        return kwargs


def take_only(request: Request, known: Sequence[str]) -> dict[str, str]:
    """What is said for each name, empty where nothing is. Refused(400) for other names, and for what is too long or has a NUL."""
    wrong = [
        Problem(name[:100], "unknown", f"not known here; there are: {', '.join(known)}")
        for name in request.query_params
        if name not in known
    ]
    said = {name: request.query_params.get(name, "").strip() for name in known}
    wrong += [
        Problem(name, "max_length", f"at most {LONGEST_WORD} characters")
        for name, text in said.items()
        if len(text) > LONGEST_WORD
    ]
    wrong += [Problem(name, "null_characters_not_allowed", "without NUL") for name, text in said.items() if "\0" in text]
    if wrong:
        raise Refused(400, "Not valid", "; ".join(f"{p.field}: {p.message}" for p in wrong), wrong)
    return said


def take_no_filter(request: Request) -> None:
    """Refuse every parameter: of a list that is always answered whole, so that nobody takes all of it for a part."""
    if wrong := {name[:100]: [_unknown(name, ())] for name in request.query_params}:
        raise ValidationError(wrong)


def _unknown(name: str, known: Sequence[str]) -> ErrorDetail:
    near = nearest(name, known)
    return ErrorDetail("not a filter of this list" + (f"; the nearest one is {near}" if near else ""), "unknown")


class ListFilter(django_filters.FilterSet):
    """What a list can be filtered by.

    `in_order`: filters that an index has in the order of the list, so that a page needs no other rows. `aliases`: other names
    that people and programs know a filter by. `reworded`: of those whose values have other words too, what makes ours of them.
    """

    in_order: ClassVar[frozenset[str]] = frozenset()
    aliases: ClassVar[Mapping[str, str]] = {}
    reworded: ClassVar[Mapping[str, Callable[[str], str]]] = {}

    @classmethod
    def renamed(cls, sent: QueryDict) -> QueryDict:
        """The parameters under the names of the filters; what comes several times is one, with commas between."""
        parameters = QueryDict(mutable=True)
        for alias, said in sent.lists():
            name, reword = cls.aliases.get(alias, alias), cls.reworded.get(alias)
            values = [reword(value) for value in said if value] if reword else said
            if name in cls.base_filters:
                parameters.setlist(name, [",".join(filter(None, (*parameters.getlist(name), *values)))])
            else:
                parameters.setlistdefault(name).extend(values)
        return parameters

    @property
    def narrows(self) -> bool:
        """Whether an index of their own serves the filters, so that the list need not be leafed through.

        A filter that is `narrow` has few rows for each of its values.
        """
        if not self.form.is_valid():
            return False
        said = {name: value for name, value in self.form.cleaned_data.items() if value not in (None, "", [])}
        exact = [name for name, value in said.items() if _exact(value)]
        return any(getattr(self.filters[name], "narrow", False) for name in exact) or (
            said.keys() <= self.in_order and len(exact) == len(said)
        )


def _exact(wanted: object) -> bool:
    """Whether all that is wanted are single values."""
    if not isinstance(wanted, Wanted) or not wanted.any_of or wanted.none_of:
        return False
    return all(
        not part.wild if isinstance(part, Word) else isinstance(part, str) or [name for name, _ in part] == ["exact"]
        for part in wanted.any_of
    )


def last_hours(number: str) -> str:
    """`hours=24` of BigPanDA as a time since then; what is no number is left to be refused."""
    return f"-{number.strip()}h"


class _Wide(forms.TextInput):
    """A text of an address; several of one name are one with commas between."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        values = data.getlist(name) if hasattr(data, "getlist") else [data.get(name)]
        return ",".join(value for value in values if value) or None


class WordsField(forms.CharField):
    """A field that holds the words of a filter."""

    widget = _Wide

    def __init__(self, *, read: Callable[[str], Wanted[Any]], **kwargs: Any) -> None:
        super().__init__(**{"max_length": LONGEST, **kwargs})
        self.read = read

    def clean(self, value: Any) -> Wanted[Any] | None:
        """What is wanted; None for nothing said. ValidationError with the rule that it breaks."""
        text = super().clean(value)
        if not text:
            return None
        try:
            found = self.read(text)
        except Unreadable as bad:
            # As a parameter: what was sent may hold a %, which a message may not.
            raise forms.ValidationError("%(told)s", bad.rule, {"told": str(bad)}) from None
        return found if found.any_of or found.none_of else None


class WordsFilter(django_filters.CharFilter, Generic[Part]):
    """A filter by words. `condition` makes the condition of one of them; without it the column is compared.

    `narrow`: an index gives the few rows of each single value.
    """

    field_class = WordsField

    def __init__(self, *args: Any, condition: Condition | None = None, narrow: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, read=self.read, **kwargs)
        self.narrow = narrow
        self._condition = condition

    def read(self, text: str) -> Wanted[Part]:
        """What the text wants; raises Unreadable."""
        raise NotImplementedError

    def compared(self, part: Part) -> Q:
        """That the column is as one part wants."""
        raise NotImplementedError

    def filter(self, qs: QuerySet[Any], value: Wanted[Part] | None) -> QuerySet[Any]:
        """The rows that are wanted."""
        if not value:
            return qs
        if value.any_of:
            qs = qs.filter(self._any(value.any_of, qs.db))
        return qs.exclude(self._any(value.none_of, qs.db)) if value.none_of else qs

    def _any(self, parts: Iterable[Part], using: str) -> Q:
        make = self._condition
        return reduce(or_, (self.compared(part) if make is None else make(part, using) for part in parts))


class NameFilter(WordsFilter[Word]):
    """A text, with * and ? as wildcards. A condition gets its pattern."""

    def __init__(self, *args: Any, condition: Condition | None = None, **kwargs: Any) -> None:
        by_word: Condition | None = None if condition is None else lambda word, using: condition(pattern(word), using)
        super().__init__(*args, condition=by_word, **kwargs)

    def read(self, text: str) -> Wanted[Word]:
        return texts(text)

    def compared(self, part: Word) -> Q:
        return named(self.field_name, part.text) if part.wild else Q(**{self.field_name: part.text})


class Literal(str):
    """A pattern that stands for itself, whatever is in it."""

    __slots__ = ()


def pattern(word: Word) -> str:
    """The pattern of a word."""
    return Literal(word.text) if word.quoted else word.text


def is_named(column: str, text: str) -> Q:
    """That a column matches a pattern."""
    return Q(**{column: str(text)}) if isinstance(text, Literal) else named(column, text)


class AnyOf(WordsFilter[str]):
    """One of the choices, or several separated by commas. `coerce`: the stored value of a choice."""

    def __init__(self, choices: Sequence[str], *, coerce: Callable[[str], Any] = str, help_text: str = "", **kwargs: Any) -> None:
        self.choices = tuple(choices)
        self._coerce = coerce
        listed = f"{', '.join(self.choices)}; several with commas between, !{self.choices[0]} for any other"
        super().__init__(help_text=f"{help_text}; {listed}" if help_text else listed, **kwargs)

    def read(self, text: str) -> Wanted[str]:
        found = texts(text)
        for word in (*found.any_of, *found.none_of):
            if word.text not in self.choices:
                near = nearest(word.text, self.choices)
                hint = f"; the nearest one is {near}" if near else ""
                raise Unreadable("invalid_choice", f"{word.text[:100]!r} is none of the choices{hint}")
        return Wanted(tuple(w.text for w in found.any_of), tuple(w.text for w in found.none_of))

    def compared(self, part: str) -> Q:
        return Q(**{self.field_name: self._coerce(part)})

    def filter(self, qs: QuerySet[Any], value: Wanted[str] | None) -> QuerySet[Any]:
        """With one comparison for all choices."""
        if not value or self._condition is not None:
            return super().filter(qs, value)
        stored = f"{self.field_name}__in"
        if value.any_of:
            qs = qs.filter(**{stored: sorted({self._coerce(choice) for choice in value.any_of})})
        return qs.exclude(**{stored: sorted({self._coerce(choice) for choice in value.none_of})}) if value.none_of else qs


class NumberFilter(WordsFilter[Bounds[int]]):
    """Whole numbers and ranges of them."""

    def __init__(self, *args: Any, least: int = 0, most: int = LARGEST_ID, help_text: str = "", **kwargs: Any) -> None:
        self._least, self._most = least, most
        super().__init__(*args, help_text=f"{help_text or 'a number'}; ranges are 100..200, >5, <=5", **kwargs)

    def read(self, text: str) -> Wanted[Bounds[int]]:
        return numbers(text, self._least, self._most)

    def compared(self, part: Bounds[Any]) -> Q:
        return Q(**{f"{self.field_name}__{comparison}": value for comparison, value in part})


class IdFilter(NumberFilter):
    """Numbers of rows."""


class TimeFilter(NumberFilter):
    """Times and spans of them."""

    def __init__(self, *args: Any, help_text: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.extra["help_text"] = f"{help_text or 'a time'}: {TIMES}; since then where it is a length alone; spans are a..b, <b"

    def read(self, text: str) -> Wanted[Bounds[Any]]:
        return times(text, clock.now())


class AgeFilter(TimeFilter):
    """How long ago something began."""

    def __init__(self, *args: Any, help_text: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.extra["help_text"] = f"{help_text or 'how old'}: {LENGTHS}; at most so old, older with >2h, between with 2h..7d"

    def read(self, text: str) -> Wanted[Bounds[Any]]:
        return ages(text, clock.now())


class FlagFilter(AnyOf):
    """true or false. `holds` makes the condition that it is true."""

    def __init__(self, holds: Q | None = None, **kwargs: Any) -> None:
        super().__init__(("true", "false"), **kwargs)
        self._holds = holds

    def filter(self, qs: QuerySet[Any], value: Wanted[str] | None) -> QuerySet[Any]:
        if not value:
            return qs
        wanted = set(value.any_of or self.choices) - set(value.none_of)
        holds = self._holds if self._holds is not None else Q(**{self.field_name: True})
        return {1: qs.filter(holds) if "true" in wanted else qs.exclude(holds), 0: qs.none()}.get(len(wanted), qs)


def add_filter(filters: type[ListFilter], name: str, added: django_filters.Filter) -> None:
    """Let an app above add a filter to a list of one below, which does not know its tables. LookupError where there is one."""
    if name in filters.base_filters:
        raise LookupError(f"{filters.__name__} has a filter {name}")
    added.field_name = added.field_name or name
    filters.base_filters[name] = added
