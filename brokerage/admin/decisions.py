"""Decisions of the brokerage and the snapshots they were taken on: to read, and to pin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.adminpages import ReadOnlyAdmin, pretty, row
from brokerage.ledger.decisions import pin
from brokerage.models import Decision, GridPart, StoredSnapshot
from brokerage.queries.decisions import explanation_of, with_snapshot


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    """Decisions with their story."""

    list_display = ("id", "task", "policy", "outcome", "n_chosen", "n_candidates", "n_times", "last_at", "pinned")
    list_filter = ("outcome", "pinned")
    actions = ("pin", "unpin")
    number_fields = ("id", "task_id")
    search_fields = ("=policy",)
    search_help_text = "Number of decision or task, or the policy."

    def has_pin_permission(self, request: HttpRequest) -> bool:
        """Who may see decisions may keep them."""
        return self.has_view_permission(request)

    @admin.action(description="Pin selected decisions: their snapshots are kept", permissions=["pin"])
    def pin(self, request: HttpRequest, queryset: QuerySet[Decision]) -> None:
        """Keep what they were taken on."""
        self._pin(request, queryset, pinned=True)

    @admin.action(description="Unpin selected decisions", permissions=["pin"])
    def unpin(self, request: HttpRequest, queryset: QuerySet[Decision]) -> None:
        """Let go of what they were taken on, as soon as nothing else needs it."""
        self._pin(request, queryset, pinned=False)

    def _pin(self, request: HttpRequest, queryset: QuerySet[Decision], *, pinned: bool) -> None:
        ids = list(queryset.order_by("id").values_list("id", flat=True))
        with transaction.atomic():
            changed = pin(ids, pinned)
            audit("decision.pin", authenticate(request), f"decisions {ids}"[:200], after={"pinned": pinned, "changed": changed})
        self.message_user(request, f"{changed} decisions {'pinned' if pinned else 'unpinned'}.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Decision]:
        """Lists need neither ask nor record."""
        rows: QuerySet[Decision] = super().get_queryset(request)
        at_one = request.resolver_match is not None and "object_id" in request.resolver_match.kwargs
        return with_snapshot(rows) if at_one else rows.defer("ask", "record", "config", "own")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """The story first, JSON indented last."""
        columns = [name for name in super().get_fields(request, obj) if name not in ("ask", "config", "task_id")]
        return ["task", "verdict", "chosen", "skipped", *columns, "asked", "configured"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("task", "verdict", "chosen", "skipped", "asked", "configured")

    @admin.display(description="task", ordering="task_id")
    def task(self, decision: Decision) -> SafeString | str:
        return row("workqueues_task", decision.task_id)

    @admin.display(description="verdict")
    def verdict(self, decision: Decision) -> str:
        story = explanation_of(decision)
        return story.verdict if story else "its record is of a format that is no longer read"

    @admin.display(description="chosen")
    def chosen(self, decision: Decision) -> SafeString | str:
        story = explanation_of(decision)
        lines = [(c.name, f"{c.weight:.4g}") for c in story.chosen] if story else []
        return format_html_join("", "<div>{}: weight {}</div>", lines) or "-"

    @admin.display(description="skipped")
    def skipped(self, decision: Decision) -> SafeString | str:
        """Each skipped candidate with the first criterion and its reason; a hundred at most."""
        story = explanation_of(decision)
        lines = [(s.name, s.criterion, s.reason) for s in story.skipped[:100]] if story else []
        return format_html_join("", "<div>{}: {} {}</div>", lines) or "-"

    @admin.display(description="ask")
    def asked(self, decision: Decision) -> SafeString:
        return pretty(decision.ask)

    @admin.display(description="config")
    def configured(self, decision: Decision) -> SafeString:
        return pretty(decision.config)


class SnapshotTableAdmin(ReadOnlyAdmin):
    """Rows with a large compressed column, which is not read: its size is shown."""

    content: str

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Without what it holds, with its size."""
        return super().get_queryset(request).annotate(bytes=Length(self.content)).defer(self.content)

    @admin.display(description="size, bytes", ordering="bytes")
    def size(self, obj: Any) -> int:
        return int(getattr(obj, "bytes", 0))


@admin.register(StoredSnapshot)
class StoredSnapshotAdmin(SnapshotTableAdmin):
    content = "moment"
    list_display = ("id", "at", "size", "grid_id", "links_id")
    number_fields = ("id",)
    search_fields = ("=grid__digest",)
    search_help_text = "Number, or digest of the grid."


@admin.register(GridPart)
class GridPartAdmin(SnapshotTableAdmin):
    content = "content"
    list_display = ("digest", "size")
    search_fields = ("=digest",)
    search_help_text = "Digest."
