"""Overrides of operators: attributes of the grid that win over documents and feeds."""

from __future__ import annotations

from django.contrib import admin

from broker_site.access.auditedadmin import AuditedAdmin
from brokerage.models import LocalOverride


@admin.register(LocalOverride)
class LocalOverrideAdmin(AuditedAdmin):
    """Overrides."""

    fields = ("kind", "name", "attribute", "value", "reason", "until", "who", "since", "beneath")
    readonly_fields = ("who", "since", "beneath")
    list_display = ("kind", "name", "attribute", "value", "beneath", "reason", "who", "since", "until")
    list_filter = ("kind", "attribute")
    search_fields = ("name", "reason", "who")
    ordering = ("kind", "name", "attribute")
