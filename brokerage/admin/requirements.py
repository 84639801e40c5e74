"""Admin of what jobs require by several values and where they may go, and of what groups used, to read."""

from __future__ import annotations

from collections import defaultdict

from django.contrib import admin
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from broker_site.foundation.adminfields import NamedValues
from broker_site.foundation.adminpages import ReadOnlyAdmin, row
from brokerage.models import GroupUse, RequirementPlace, RequirementSet, RequirementValue

MOST_VALUES = 500
"""Values, and places, of a requirement set that a page shows."""
_PLACES = "computing queues to which open jobs may go"


def values_text(set_id: int | None) -> SafeString | str:
    """The values of a requirement set, by attribute; a dash where there is none."""
    values: dict[str, list[str]] = defaultdict(list)
    rows = RequirementValue.objects.filter(requirement_set_id=set_id).order_by("attribute", "value")
    for attribute, value in rows.values_list("attribute", "value")[:MOST_VALUES]:
        values[attribute].append(value)
    return format_html_join("; ", "{}: {}", ((name, ", ".join(some)) for name, some in values.items())) or "-"


def places_text(set_id: int | None) -> SafeString | str:
    """Its places with where the outputs go; a dash where there is none."""
    places = RequirementPlace.objects.filter(requirement_set_id=set_id).order_by("computing_queue__name")
    named = places.values_list("computing_queue_id", "computing_queue__name", "storage", "own_datasets")[:MOST_VALUES]
    shown = (
        (row("brokerage_computingqueue", id_, name), storage or "the storage of the task", ", its own datasets" if own else "")
        for id_, name, storage, own in named
    )
    return format_html_join("; ", "{}, outputs to {}{}", shown) or "-"


@admin.register(RequirementSet)
class RequirementSetAdmin(ReadOnlyAdmin):
    """What jobs require by several values, with its values and places; those first that were looked for last."""

    list_display = ("id", "digest", "used_at")
    ordering = ("-used_at",)
    number_fields = ("id",)
    search_fields = ("=digest",)
    search_help_text = "Number or whole digest."
    fields = ("id", "digest", "used_at", "requires", "places")
    related = (("task queues", "brokerage_taskqueue", "requirement_set_id"),)

    @admin.display(description="values")
    def requires(self, requirement_set: RequirementSet) -> SafeString | str:
        return values_text(requirement_set.id)

    @admin.display(description=_PLACES)
    def places(self, requirement_set: RequirementSet) -> SafeString | str:
        return places_text(requirement_set.id)


class PartAdmin(ReadOnlyAdmin):
    """Rows that are parts of a requirement set, with a link to it, found by its number."""

    number_fields = ("requirement_set_id",)

    @admin.display(description="requirement set", ordering="requirement_set_id")
    def set_link(self, part: RequirementValue | RequirementPlace) -> SafeString | str:
        return row("brokerage_requirementset", part.requirement_set_id)


@admin.register(RequirementValue)
class RequirementValueAdmin(PartAdmin):
    """Values: which requirement sets list a site, a tag, a platform."""

    list_display = ("id", "attribute", "value", "set_link")
    list_filter = ("attribute",)
    search_fields = ("=value",)
    search_help_text = "Number of a requirement set, or a whole value."


@admin.register(RequirementPlace)
class RequirementPlaceAdmin(PartAdmin):
    """Places: to which computing queues open jobs may go, and where their outputs go from there."""

    list_display = ("id", "computing_queue", "storage", "own_datasets", "set_link")
    list_filter = ("computing_queue",)
    list_select_related = ("computing_queue",)
    search_fields = ("=storage",)
    search_help_text = "Number of a requirement set, or a whole storage endpoint."


@admin.register(GroupUse)
class GroupUseAdmin(ReadOnlyAdmin):
    """What owners in groups used by the hour, the last hours first: by this the shares of groups are corrected."""

    list_display = ("id", "hour", "vo", "owner_group", "owner", "hs06_s", "looked_at")
    list_filter = (("vo", NamedValues),)
    ordering = ("-hour",)
    search_fields = ("=owner_group", "=owner")
    search_help_text = "Group or owner."
