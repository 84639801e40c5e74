"""Admin of limits at sites, to read: what sites advertise with the room that is left, and how limits on kinds of jobs stand."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import F, QuerySet
from django.db.models.functions import Extract, Now
from django.http import HttpRequest

from broker_site.foundation.adminpages import ReadOnlyAdmin
from brokerage.models import MatchGauge, PilotCE, RoomBlock, SiteAdvertisement
from brokerage.queries.site_limits import max_age_s
from brokerage.rules.dispatch.site_limits import NUMBERS, Advertisement, SiteState, room, why_no_room


@admin.register(SiteAdvertisement)
class SiteAdvertisementAdmin(ReadOnlyAdmin):
    """The last advertisement of each site, those first that are oldest."""

    list_display = (
        *("site", "kind", "age_s", "room", "why_no_room", "current_jobs", "max_jobs"),
        *("current_submitting_jobs", "max_submitting_jobs", "matched", "stations"),
    )
    list_filter = ("kind",)
    ordering = ("counted_at",)
    search_fields = ("=site__name",)
    search_help_text = "The whole name of a site."

    def get_queryset(self, request: HttpRequest) -> QuerySet[SiteAdvertisement]:
        return super().get_queryset(request).annotate(old=Extract(Now() - F("counted_at"), "epoch"))

    @admin.display(description="age, s", ordering="counted_at")
    def age_s(self, obj: SiteAdvertisement) -> int:
        return round(_old_s(obj))

    @admin.display(description="room")
    def room(self, obj: SiteAdvertisement) -> int:
        return 0 if _old_s(obj) > max_age_s() else room(state_of(obj))

    @admin.display(description="why no room")
    def why_no_room(self, obj: SiteAdvertisement) -> str:
        return why_no_room(state_of(obj), _old_s(obj), max_age_s())


@admin.register(RoomBlock)
class RoomBlockAdmin(ReadOnlyAdmin):
    """Room that web processes took, the latest first; rows go once a count of their site is newer."""

    list_display = ("id", "site", "number", "taken_at", "n", "used", "closed_at")
    list_filter = ("site",)


@admin.register(MatchGauge)
class MatchGaugeAdmin(ReadOnlyAdmin):
    """Running limits and delays between matches: how they stand."""

    list_display = ("site", "ce", "attribute", "value", "running", "matched", "counted_at", "free_at")
    list_filter = ("site", "attribute")
    search_fields = ("=value", "=ce")
    search_help_text = "The whole value, or computing element."


@admin.register(PilotCE)
class PilotCEAdmin(ReadOnlyAdmin):
    """Where pilots are that got jobs at sites with limits for their computing elements."""

    list_display = ("pilot_id", "ces")
    ordering = ("ces",)
    search_fields = ("=pilot_id",)
    search_help_text = "The whole number of a pilot."


def state_of(row: SiteAdvertisement) -> SiteState:
    """What the rules judge."""
    return SiteState(Advertisement(**{name: getattr(row, name) for name in NUMBERS}), row.matched)


def _old_s(row: SiteAdvertisement) -> float:
    return float(row.old)  # type: ignore[attr-defined]  # annotated
