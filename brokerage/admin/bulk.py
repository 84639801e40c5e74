"""Acts on many tasks or jobs and what became of each, to read."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin, row_link
from brokerage.models import BulkAction, BulkTarget


@admin.register(BulkAction)
class BulkActionAdmin(ReadOnlyAdmin):
    list_display = ("id", "of", "act", "n", "user", "at", "ended_at")
    list_filter = ("of", "act")
    list_select_related = ("user",)
    search_fields = ("=user__username",)
    search_help_text = "User, or number of the act."
    number_fields = ("id",)


@admin.register(BulkTarget)
class BulkTargetAdmin(ReadOnlyAdmin):
    list_display = ("id", "action", "target_id", "outcome", "said")
    list_filter = ("outcome",)
    list_select_related = ("action",)
    search_help_text = "Number of the row."
    search_fields = ("=action__act",)
    number_fields = ("id",)
    action = row_link("action", "brokerage_bulkaction", "action_id")
