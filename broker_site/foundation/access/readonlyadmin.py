"""A ModelAdmin for tables that ledgers and agents write: to look at, also when they are large, never to edit."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import BinaryField, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

MOST_COUNTED = 10_000
"""Rows that a list counts and that its pages reach; narrow the search to reach others."""
LARGEST_ID = (1 << 63) - 1


class CappedPaginator(Paginator):
    """Counts at most MOST_COUNTED rows: a COUNT(*) of a large table would take longer than the page."""

    @cached_property
    def count(self) -> int:
        """Rows, or MOST_COUNTED where there are more."""
        rows: Any = self.object_list
        return int(rows.order_by()[:MOST_COUNTED].count())


class NumberSearch(admin.ModelAdmin):
    """A search for a number looks for the row of that number, and in `number_fields`, which have indexes."""

    number_fields: tuple[str, ...] = ()

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> tuple[QuerySet[Any], bool]:
        """By number where the term is one that a row may have, else by `search_fields`."""
        term = search_term.strip()
        if not (term.isascii() and term.isdigit() and int(term) <= LARGEST_ID) or not self.number_fields:
            return super().get_search_results(request, queryset, search_term)
        found = queryset.none()
        for field in self.number_fields:
            found |= queryset.filter(**{field: int(term)})
        return found, False


class ReadOnlyAdmin(NumberSearch):
    """Every column to read; nothing to add, change or delete."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # a count for each choice of each filter would read the whole table as often
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 50
    ordering = ("-pk",)
    actions: Any = None

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """All columns but bytes."""
        return [f.name for f in self.opts.concrete_fields if not isinstance(f, BinaryField)]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows are written by the system."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows are changed by the system."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows are removed by the system."""
        return False
