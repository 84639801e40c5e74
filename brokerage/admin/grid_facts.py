"""What is measured, declared and published of the grid, to edit where a document or feed does not say it."""

from __future__ import annotations

from django.contrib import admin

from broker_site.access.auditedadmin import AuditedAdmin
from brokerage.models import DeclaredSlots, Link, Measured, Software


@admin.register(Link)
class LinkAdmin(AuditedAdmin):
    """Links between sites."""

    list_display = (
        *("source", "destination", "activity", "files_queued", "mbps_1h", "mbps_1d", "mbps_1w", "closeness", "measured_at"),
    )
    list_filter = ("activity",)
    list_select_related = ("source", "destination")
    search_fields = ("source__name", "destination__name")
    autocomplete_fields = ("source", "destination")
    ordering = ("source", "destination", "activity")
    show_full_result_count = False


@admin.register(Software)
class SoftwareAdmin(AuditedAdmin):
    """Software documents of queues."""

    list_display = ("queue",)
    search_fields = ("queue",)
    ordering = ("queue",)


@admin.register(DeclaredSlots)
class DeclaredSlotsAdmin(AuditedAdmin):
    """Declared slots."""

    list_display = ("queue", "share", "resource_type", "n", "expires")
    list_select_related = ("queue",)
    search_fields = ("queue__name", "share")
    autocomplete_fields = ("queue",)
    ordering = ("queue__name", "share", "resource_type")


@admin.register(Measured)
class MeasuredAdmin(AuditedAdmin):
    """What is measured at queues."""

    list_display = ("queue", "disk_io_per_core", "starts_per_hour")
    list_select_related = ("queue",)
    search_fields = ("queue__name",)
    autocomplete_fields = ("queue",)
    ordering = ("queue__name",)
