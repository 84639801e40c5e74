"""What task queues require by several values and where their jobs may go; what groups used. To read."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin
from brokerage.models import GroupUse, RequirementPlace, RequirementSet, RequirementValue


@admin.register(RequirementSet)
class RequirementSetAdmin(ReadOnlyAdmin):
    """Sets of values and places that task queues share."""

    list_display = ("id", "digest", "used_at")
    ordering = ("-id",)
    number_fields = ("id",)
    search_fields = ("=digest",)
    search_help_text = "Number, or whole digest."


@admin.register(RequirementValue)
class RequirementValueAdmin(ReadOnlyAdmin):
    """Values of sets: sites, tags, platforms."""

    list_display = ("id", "requirement_set", "attribute", "value")
    list_filter = ("attribute",)
    list_select_related = ("requirement_set",)
    search_fields = ("=value",)
    search_help_text = "Whole value."


@admin.register(RequirementPlace)
class RequirementPlaceAdmin(ReadOnlyAdmin):
    """Computing queues to which open jobs may go."""

    list_display = ("id", "requirement_set", "computing_queue", "storage")
    list_filter = ("computing_queue",)
    list_select_related = ("requirement_set", "computing_queue")
    search_fields = ("=storage",)
    search_help_text = "Whole name of the storage endpoint."


@admin.register(GroupUse)
class GroupUseAdmin(ReadOnlyAdmin):
    """What the jobs of owners in groups held, the last hour first."""

    list_display = ("id", "hour", "vo", "owner_group", "owner", "hs06_s")
    ordering = ("-hour",)
    search_fields = ("=owner", "=owner_group")
    search_help_text = "Owner or group."
