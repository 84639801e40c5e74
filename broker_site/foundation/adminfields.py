"""Fields and filters of the admin that say what they are also to whoever hears the page: Django leaves some without a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import AdminSplitDateTime
from django.db.models import Field
from django.forms import BaseInlineFormSet
from django.http import HttpRequest


class NamedRows(BaseInlineFormSet):
    """Rows whose box to delete them says so: it stands alone in its column."""

    def add_fields(self, form: Any, index: int | None) -> None:
        super().add_fields(form, index)
        if "DELETE" in form.fields:
            form.fields["DELETE"].widget.attrs["aria-label"] = "delete this row"


class NamedFields(admin.options.BaseModelAdmin):
    """Of a page or an inline: date and time say of what, and the fields of a table of rows say their column."""

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        widget = getattr(field, "widget", None)
        if isinstance(widget, AdminSplitDateTime):
            for part, word in zip(widget.widgets, ("date", "time"), strict=True):
                part.attrs["aria-label"] = f"{db_field.verbose_name}: {word}"
        elif widget is not None and isinstance(self, admin.options.InlineModelAdmin):
            getattr(widget, "widget", widget).attrs.setdefault("aria-label", str(db_field.verbose_name))
        return field


class NamedValues(admin.AllValuesFieldListFilter):
    """Each value of a column; the empty one has a name too, else its link had none."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield {**choice, "display": choice["display"] or "none"}
