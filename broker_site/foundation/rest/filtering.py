"""Filters of lists by the query string: only those that a list names, each with its type; anything else is refused (S18)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.rest.paging import LARGEST_ID, NewestFirst
from broker_site.foundation.sql.wildcards import named

NOT_FILTERS = (NewestFirst.page_size_query_param, NewestFirst.cursor_query_param)
LONGEST = 256


class StrictBackend(DjangoFilterBackend):
    """Refuses a name that is no filter of the list, so that a misspelt one does not show everything."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        filterset = self.get_filterset_class(view, queryset)
        known = [*(filterset.base_filters if filterset else ()), *NOT_FILTERS, *getattr(view, "further_parameters", ())]
        wrong = {name[:100]: [_unknown(name, known)] for name in request.query_params if name not in known}
        if wrong:
            raise ValidationError(wrong)
        filtered: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return filtered


def _unknown(name: str, known: Sequence[str]) -> ErrorDetail:
    near = nearest(name, known)
    return ErrorDetail("not a filter of this list" + (f"; the nearest one is {near}" if near else ""), "unknown")


class IdFilter(django_filters.NumberFilter):
    """A row number that fits into its column."""

    field_class = forms.IntegerField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, min_value=0, max_value=LARGEST_ID, **kwargs)

    def get_max_validator(self) -> None:
        """None: the form field has its own bounds."""


class TextFilter(django_filters.CharFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, max_length=LONGEST, **kwargs)


class NameFilter(TextFilter):
    """A name, with * and ? as wildcards."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        return qs.filter(named(self.field_name, value)) if value else qs


class _Choice(forms.ChoiceField):
    """One of the choices; a misspelt one is told with the nearest that there is."""

    def validate(self, value: Any) -> None:
        try:
            super().validate(value)
        except forms.ValidationError:
            near = nearest(str(value), [str(option[0]) for option in self.widget.choices if option[0]])
            hint = f"; the nearest one is {near}" if near else ""
            raise forms.ValidationError(f"{str(value)[:100]!r} is none of the choices{hint}", "invalid_choice") from None


class AnyOf(django_filters.BaseInFilter, django_filters.ChoiceFilter):
    """One of the choices, or several separated by commas."""

    field_class = _Choice

    def __init__(self, choices: Sequence[str], **kwargs: Any) -> None:
        kwargs.setdefault("help_text", "one, or several separated by commas: " + ", ".join(choices))
        super().__init__(choices=[(c, c) for c in choices], **kwargs)
