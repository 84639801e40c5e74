"""Overrides of operators: attributes of the grid that win over documents and feeds, each with its reason."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.adminpages import AuditedAdmin, values
from broker_site.foundation.kernel import clock
from brokerage.ledger.grid_overrides import MODELS, end_override, set_override
from brokerage.models import LocalOverride
from brokerage.rules.grid.attributes import BadGrid, in_a_line
from brokerage.rules.grid.overrides import TABLES, read_override


class OverrideForm(ModelForm):
    """An override that keeps the rules of the grid document."""

    class Meta:
        model = LocalOverride
        fields = ("kind", "name", "attribute", "value", "reason", "until")

    def clean_until(self) -> Any:
        """A time that is yet to come, or none."""
        until = self.cleaned_data["until"]
        if until is not None and until <= clock.now():
            raise forms.ValidationError("A time that is yet to come, or nothing.", code="range")
        return until

    def clean(self) -> dict[str, Any] | None:
        """Something that is there, one of its attributes, a value of its type and range."""
        data = super().clean() or {}
        kind, name, attribute = (data.get(part) or getattr(self.instance, part) for part in ("kind", "name", "attribute"))
        if self.errors or not (kind and name and attribute):
            return data
        if not MODELS[kind]._default_manager.filter(name=name).exists():
            place = "name" if "name" in self.fields else None
            self.add_error(place, forms.ValidationError(f"there is no {kind} {name}", code="reference"))
            return data
        try:
            read_override(kind, attribute, data.get("value") or "")
        except BadGrid as bad:
            place = "value" if attribute in TABLES[kind] or "attribute" not in self.fields else "attribute"
            for p in bad.problems:
                self.add_error(place, forms.ValidationError(f"{p.rule}: {in_a_line(p)}", code=p.rule))
        return data


@admin.register(LocalOverride)
class LocalOverrideAdmin(AuditedAdmin):
    form = OverrideForm
    fields = ("kind", "name", "attribute", "value", "reason", "until", "who", "since", "beneath")
    list_display = ("kind", "name", "attribute", "value", "beneath", "reason", "who", "since", "until")
    list_display_links = ("name",)
    list_filter = ("kind", "attribute")
    search_fields = ("name", "reason", "who")
    ordering = ("kind", "name", "attribute")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """What the system notes, and what an override is about, once it is there."""
        return ("who", "since", "beneath", *(("kind", "name", "attribute") if obj is not None else ()))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Set the override, bring its row to it, audit."""
        before = values(LocalOverride.objects.get(pk=obj.pk), form.changed_data) if change else None
        obj.who = authenticate(request).name[:150]
        set_override(obj)
        self.note(request, "change" if change else "add", obj, before, values(obj, form.changed_data))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Audit, and let the document's value hold again."""
        self.note(request, "delete", obj, values(obj), None)
        end_override(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for obj in queryset:
            self.delete_model(request, obj)
