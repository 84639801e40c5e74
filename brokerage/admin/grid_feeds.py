"""Feeds: what is read, and how each is doing."""

from __future__ import annotations

from django.contrib import admin

from broker_site.access.auditedadmin import AuditedAdmin
from brokerage.models import Feed


@admin.register(Feed)
class FeedAdmin(AuditedAdmin):
    """Feeds."""

    fields = ("name", "kind", "place", "enabled", "tried_at", "good_at", "data_at", "entries", "fault", "fault_since", "faulty")
    readonly_fields = ("tried_at", "good_at", "data_at", "entries", "fault", "fault_since", "faulty")
    list_display = ("name", "kind", "enabled", "good_at", "entries", "fault", "fault_since")
    list_filter = ("kind", "enabled")
    search_fields = ("name", "place")
    ordering = ("name",)
