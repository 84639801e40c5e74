"""Grants to read datasets of a VO, to give and to withdraw."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.adminpages import AuditedAdmin, VoFilter
from workqueues.models import ReadGrant
from workqueues.queries.read_grants import check_names
from workqueues.rules.refine.data_rights import Grant, check_grant


class ReadGrantForm(ModelForm):
    """A grant that is held to the rules of REST."""

    class Meta:
        model = ReadGrant
        fields = ("vo", "pattern", "owner", "grantee_kind", "grantee", "ends_at")

    def clean(self) -> dict[str, Any] | None:
        data = super().clean()
        if not self.errors:
            ends_at = self.cleaned_data["ends_at"] if "ends_at" in self.changed_data else None
            grant = Grant(**{name: self.cleaned_data[name] for name in Grant._fields})
            for fault in [*check_grant(grant, ends_at, timezone.now()), *check_names(grant)]:
                self.add_error(fault.field, forms.ValidationError(fault.message, code=fault.rule))
        return data


@admin.register(ReadGrant)
class ReadGrantAdmin(AuditedAdmin):
    form = ReadGrantForm
    list_display = ("id", "vo", "pattern", "owner", "grantee_kind", "grantee", "made_by", "made_at", "ends_at")
    list_filter = (VoFilter, "grantee_kind")
    search_fields = ("=grantee", "=pattern", "=owner")
    search_help_text = "VO or user that may read, owner, or the whole pattern."
    readonly_fields = ("made_by", "made_at")
    ordering = ("-id",)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Whoever saved it last answers for it."""
        obj.made_by = authenticate(request).name
        super().save_model(request, obj, form, change)
