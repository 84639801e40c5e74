"""What the admin pages of every app share: pages to look at, pages whose changes leave an audit row, and cells that show rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import BinaryField, Model, QuerySet
from django.forms import BaseModelFormSet, ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.models import Role
from broker_site.foundation.adminfields import NamedFields

MOST_COUNTED = 10_000
"""Rows that a list counts and that its pages reach; narrow the search to reach others."""
LARGEST_ID = (1 << 63) - 1
SHORT = {
    "vo": "VO", "vos": "VOs", "cpu": "CPU", "io": "I/O", "lfn": "LFN", "gb": "GB", "mb": "MB", "mbps": "MB/s", "hs06": "HS06",
    "ce": "CE", "url": "URL",
}  # fmt: skip
"""Words of columns that are written otherwise where people read them."""
_NEVER = frozenset({"password", "password1", "password2", "secret"})


def call_columns(models: Iterable[type[Model]]) -> None:
    """Let labels of the admin say `VO`, not `Vo`; a migration, which says the name as it was declared, sees nothing of it."""
    for model in models:
        for column in model._meta.local_fields:
            column.verbose_name = " ".join(SHORT.get(word, word) for word in str(column.verbose_name).split(" "))


class ReadingAdmin(admin.ModelAdmin):
    """Rows that the system writes: nothing to add, change or delete."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class CappedPaginator(Paginator):
    """Counts at most MOST_COUNTED rows: a COUNT(*) of a large table would take longer than the page."""

    @cached_property
    def count(self) -> int:
        """Rows, or MOST_COUNTED where there are more."""
        rows: Any = self.object_list
        return int(rows.order_by()[:MOST_COUNTED].count())


class ReadOnlyAdmin(ReadingAdmin):
    """Every column to read, also of large tables.

    A search for a number looks for the row of that number, and in `number_fields`, which have indexes. `related`: lists of rows
    that belong to one: words, model as app_model, and the column of it that has the id.
    """

    asks_password = False
    number_fields: tuple[str, ...] = ()
    related: tuple[tuple[str, str, str], ...] = ()
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # a count for each choice of each filter would read the whole table as often
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 50
    ordering = ("-pk",)
    actions: Any = None

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        """A whole name is compared as it is: Django's `=` does not regard case, for which no index of names is of use."""
        return [f"{field[1:]}__exact" if field.startswith("=") else field for field in super().get_search_fields(request)]

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> tuple[QuerySet[Any], bool]:
        """By number where the term is one that a row may have, else by `search_fields`."""
        term = search_term.strip()
        number = term.isascii() and term.isdigit() and len(term) <= len(str(LARGEST_ID)) and int(term) <= LARGEST_ID
        if not (number and self.number_fields):
            return super().get_search_results(request, queryset, search_term)
        rows = queryset.none()
        for field in self.number_fields:
            rows |= queryset.filter(**{field: int(term)})
        return rows, False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """All columns but bytes, behind the lists that belong to the row."""
        columns = [f.name for f in self.opts.concrete_fields if not isinstance(f, BinaryField)]
        return ["belonging", *columns] if self.related else columns

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("belonging",) if self.related else ()

    @admin.display(description="lists")
    def belonging(self, obj: Model) -> SafeString:
        links = (
            (reverse(f"admin:{model}_changelist"), urlencode({column: obj.pk}), words) for words, model, column in self.related
        )
        return format_html_join(" · ", '<a href="{}?{}">{}</a>', links)


class AuditedAdmin(NamedFields, admin.ModelAdmin):
    """Audits adding, changing and deleting, with the changed fields before and after; inlines too."""

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Save and audit in the transaction of the admin's view."""
        fields = form.changed_data
        before = values(type(obj)._default_manager.get(pk=obj.pk), fields) if change else None
        super().save_model(request, obj, form, change)
        self.note(request, "change" if change else "add", obj, before, values(obj, fields))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.note(request, "delete", obj, values(obj), None)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete one by one, so that each has its row."""
        for obj in queryset:
            self.delete_model(request, obj)

    def save_formset(self, request: HttpRequest, form: Any, formset: BaseModelFormSet, change: bool) -> None:
        """Save an inline and audit each of its rows that changed."""
        super().save_formset(request, form, formset, change)
        for obj in formset.new_objects:
            self.note(request, "add", obj, None, values(obj))
        for obj, fields in formset.changed_objects:
            self.note(request, "change", obj, None, values(obj, fields))
        for obj in formset.deleted_objects:
            self.note(request, "delete", obj, values(obj), None)

    def note(self, request: HttpRequest, verb: str, obj: Model, before: Any, after: Any) -> None:
        """One audit row: `user.change`, object `user 7 alice`."""
        kind = obj._meta.model_name or ""
        target = f"{kind} {obj.pk} {obj}"
        audit(f"{kind}.{verb}", authenticate(request), target, vo=str(getattr(obj, "vo", "") or ""), before=before, after=after)


def values(obj: Model, fields: list[str] | None = None) -> dict[str, Any]:
    """The plain columns of a row, or those of `fields`, as JSON values; passwords and secrets left out."""
    return {
        field.name: _plain(field.value_from_object(obj))
        for field in obj._meta.concrete_fields
        if field.name not in _NEVER and (fields is None or field.name in fields)
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | dict | list | None) else str(value)


class VoFilter(admin.SimpleListFilter):
    """The VOs in which somebody has a role: looking for those of a large table would read all of it."""

    title = "VO"
    parameter_name = "vo"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(vo, vo) for vo in Role.objects.order_by("vo").values_list("vo", flat=True).distinct()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(vo=self.value()) if self.value() else queryset


def cut(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def pretty(value: Any) -> SafeString:
    return format_html("<pre>{}</pre>", json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False))


def row(model: str, pk: Any, words: Any = None) -> SafeString | str:
    """A link to a row; a dash where there is none."""
    if pk in (None, 0, ""):
        return "-"
    return format_html('<a href="{}">{}</a>', reverse(f"admin:{model}_change", args=[pk]), pk if words is None else words)


def row_link(words: str, model: str, column: str) -> Callable[[Any, Any], SafeString | str]:
    """A column of a list that links to the row whose id is in `column`."""

    @admin.display(description=words, ordering=column)
    def link(_page: Any, obj: Any) -> SafeString | str:
        return row(model, getattr(obj, column))

    return link
