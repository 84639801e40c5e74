"""Admin of what the last asks at each queue got, and how many ended in which way."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin
from brokerage.models import AskHour, QueueAsk


@admin.register(QueueAsk)
class QueueAskAdmin(ReadOnlyAdmin):
    """The last asks of pilots, newest first."""

    list_display = ("id", "at", "queue", "outcome", "jobs", "pilot_id", "unknown", "took_ms")
    list_filter = ("queue", "outcome")
    list_select_related = ("queue",)
    ordering = ("-id",)
    search_fields = ("=pilot_id",)
    search_help_text = "Whole id of the pilot."


@admin.register(AskHour)
class AskHourAdmin(ReadOnlyAdmin):
    """Asks by queue, outcome and hour, newest first."""

    list_display = ("id", "hour", "queue", "outcome", "minutes")
    list_filter = ("queue", "outcome")
    list_select_related = ("queue",)
    ordering = ("-hour",)
    search_fields = ("=outcome",)
    search_help_text = "Outcome."
