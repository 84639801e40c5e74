"""Pilots and task queues, to read."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin
from brokerage.models import Pilot, TaskQueue


@admin.register(Pilot)
class PilotAdmin(ReadOnlyAdmin):
    """Pilots, the last registered first. Their credentials are revoked among the credentials."""

    list_display = ("id", "queue", "host", "slot", "core_count", "memory_mb", "registered_at", "last_seen")
    list_filter = ("queue",)
    list_select_related = ("queue",)
    ordering = ("-registered_at",)
    search_fields = ("=host", "=slot")
    search_help_text = "Host or slot."


@admin.register(TaskQueue)
class TaskQueueAdmin(ReadOnlyAdmin):
    """Sets of requirements under which jobs wait together."""

    list_display = (
        "id", "computing_queue", "vo", "prod_source_label", "resource_type", "core_count", "ram_mb", "disk_mb", "walltime_s",
    )  # fmt: skip
    list_filter = ("computing_queue",)
    list_select_related = ("computing_queue",)
    number_fields = ("id",)
    search_fields = ("=vo",)
    search_help_text = "Number, or VO."
