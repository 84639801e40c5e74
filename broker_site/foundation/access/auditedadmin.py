"""A ModelAdmin whose every change leaves an audit row; for all models that operators edit in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.forms import BaseModelFormSet, ModelForm
from django.http import HttpRequest

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.authentication import authenticate

_NEVER = frozenset({"password", "password1", "password2", "secret"})


class AuditedAdmin(admin.ModelAdmin):
    """Audits adding, changing and deleting, with the changed fields before and after; inlines too."""

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Save and audit in the transaction of the admin's view."""
        fields = form.changed_data
        before = values(type(obj)._default_manager.get(pk=obj.pk), fields) if change else None
        super().save_model(request, obj, form, change)
        self.note(request, "change" if change else "add", obj, before, values(obj, fields))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete and audit."""
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
