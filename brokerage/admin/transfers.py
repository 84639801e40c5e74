"""Transfers with who wishes them and their moves, to read; limits of links, to edit."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin
from brokerage.admin.grid_edits import EditsGrid
from brokerage.models import (
    LinkHour,
    LinkLoad,
    LocalCopy,
    ReplicaChange,
    Transfer,
    TransferChange,
    TransferCount,
    TransferLink,
    TransferWish,
)


@admin.register(Transfer)
class TransferAdmin(ReadOnlyAdmin):
    list_display = ("id", "source", "destination", "status", "status_since", "reason", "activity", "priority", "attempt", "vo")
    number_fields = ("id", "file_id")
    search_fields = ("=vo",)
    search_help_text = "Number of the transfer or of its file, or VO."
    related = (
        ("wishes", "brokerage_transferwish", "transfer_id"),
        ("history", "brokerage_transferchange", "transfer_id"),
    )


@admin.register(TransferWish)
class TransferWishAdmin(ReadOnlyAdmin):
    list_display = ("id", "transfer_id", "role", "job_id", "task_id", "vo", "owner", "created_at", "closed_at")
    number_fields = ("id", "transfer_id")
    search_fields = ("=id",)
    search_help_text = "Number of the wish or of its transfer."


@admin.register(TransferChange)
class TransferChangeAdmin(ReadOnlyAdmin):
    list_display = ("id", "at", "transfer_id", "old", "new", "attempt", "who", "why")
    number_fields = ("transfer_id",)
    search_fields = ("=id",)
    search_help_text = "Number of the transfer."


@admin.register(ReplicaChange)
class ReplicaChangeAdmin(ReadOnlyAdmin):
    """Copies that were made, removed or found damaged."""

    list_display = ("id", "at", "file_id", "storage", "what", "who", "why")
    number_fields = ("file_id",)
    search_fields = ("=id",)
    search_help_text = "Number of the file in the catalogue."


@admin.register(LocalCopy)
class LocalCopyAdmin(ReadOnlyAdmin):
    """Copies that the mover makes now."""

    list_display = ("key", "source", "destination", "status", "bytes", "copied", "mover", "created_at")
    list_select_related = ("source", "destination")
    ordering = ("-created_at",)


@admin.register(TransferLink)
class TransferLinkAdmin(EditsGrid):
    list_display = ("source", "destination", "max_active", "mb_per_s", "blocked_until", "blocked_why")
    list_select_related = ("source", "destination")
    search_fields = ("source__name", "destination__name")
    autocomplete_fields = ("source", "destination")
    ordering = ("source", "destination")


@admin.register(LinkLoad)
class LinkLoadAdmin(ReadOnlyAdmin):
    """What is open on links now, and how fast they were."""

    list_display = ("source", "destination", "activity", "files", "bytes", "mbps_1h", "mbps_1d", "mbps_1w")
    list_filter = ("activity",)
    search_fields = ("=source", "=destination")
    search_help_text = "Name of a site."


@admin.register(LinkHour)
class LinkHourAdmin(ReadOnlyAdmin):
    """What links carried in each hour."""

    list_display = ("hour", "source", "destination", "files", "bytes", "busy_s")
    search_fields = ("=source", "=destination")
    search_help_text = "Name of a site."
    ordering = ("-hour",)


@admin.register(TransferCount)
class TransferCountAdmin(ReadOnlyAdmin):
    list_display = ("counted_at", "ended_until")
