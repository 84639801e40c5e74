"""The share tree, to edit: weights among siblings, and which tasks each leaf takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.contrib import admin, messages
from django.db.models import Case, FloatField, QuerySet, Sum, Value, When, Window
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from broker_site.foundation.adminpages import ReadOnlyAdmin, VoFilter
from broker_site.foundation.gdpconfig.admin.steered import SteeredAdmin, SteeredForm
from broker_site.foundation.gdpconfig.changesets import Place
from workqueues.admin.trying import TryForm
from workqueues.models import GlobalShare, ShareStanding, Task, ThrottleVerdict, WorkQueueStanding
from workqueues.queries.shares import PATTERNS, bad_patterns, trees
from workqueues.queries.steered_rows import SHARE_COLUMNS, share_place
from workqueues.rules.shares.mapping import LeafTrial, trials
from workqueues.rules.shares.tree import targets, walk
from workqueues.rules.work_queues.task_attributes import spelled

FIELDS = ("name", "vo", "parent", "value", "position", "throttled", *PATTERNS)
ASKED = (*FIELDS, "why", "seen")


class ShareForm(SteeredForm):
    """A share; name and VO stay once it is there."""

    places = {"key": "name"}

    class Meta:
        model = GlobalShare
        fields = FIELDS

    def line_place(self, row: GlobalShare) -> Place:
        return share_place(row.name, row.vo)

    def line_columns(self, cleaned: Mapping[str, Any]) -> dict[str, Any]:
        parent = cleaned["parent"]
        return {column.name: cleaned[column.name] for column in SHARE_COLUMNS} | {"parent": parent.name if parent else ""}


INDENT = "\u2003"
"""What a level of the tree is set in by: a wide blank."""


def _in_trees() -> dict[str, Case]:
    """Columns for every share: its place in the list of all trees, parents before their children, its depth, its part of all."""
    rows: list[tuple[str, int, float]] = []
    for _, tree in sorted(trees().items()):
        percent = targets(tree.nodes, 100.0)
        rows += [(node.name, level, percent[node.name]) for node, _, level in walk(tree.nodes)]
    return {
        "place_in_tree": Case(
            *(When(name=name, then=Value(at)) for at, (name, _, _) in enumerate(rows)), default=Value(len(rows))
        ),
        "level": Case(*(When(name=name, then=Value(level)) for name, level, _ in rows), default=Value(0)),
        "percent": Case(*(When(name=name, then=Value(part)) for name, _, part in rows), default=None, output_field=FloatField()),
    }


@admin.register(GlobalShare)
class GlobalShareAdmin(SteeredAdmin):
    """Shares of a VO: what part of the power each gets."""

    form = ShareForm
    fields = ASKED
    list_display = ("in_tree", "vo", "value", "of_siblings", "of_all", "throttled", *PATTERNS)
    search_fields = ("name",)
    change_list_template = "admin/workqueues/trying.html"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Tasks and jobs know a share by its name, so that stays."""
        return () if obj is None else ("name", "vo")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The shares, each with the sum of those beside it and itself, and with its place in the tree."""
        beside = Window(Sum("value"), partition_by=["vo", "parent"])
        return GlobalShare.objects.annotate(beside=beside, **_in_trees())

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """The list goes through the trees from the top; choices of parents, which have no such place, go by name."""
        listing = request.resolver_match is not None and str(request.resolver_match.url_name).endswith("_changelist")
        return ("place_in_tree", "name") if listing else ("name",)

    def pk_of(self, place: Place) -> str:
        return place.name

    def place_of(self, obj: GlobalShare) -> Place:
        return share_place(obj.name, obj.vo)

    @admin.display(description="Share")
    def in_tree(self, share: Any) -> str:
        """The name, further in for each level."""
        return f"{INDENT * (share.level or 0)}{share.name}"

    @admin.display(description="Of all")
    def of_all(self, share: Any) -> str:
        return "-" if share.percent is None else f"{share.percent:.1f} %"

    @admin.display(description="Of its siblings")
    def of_siblings(self, share: Any) -> str:
        return f"{share.value / share.beside * 100:.1f} %" if share.beside else "-"

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Save, and tell where siblings do not make a hundred."""
        super().save_model(request, obj, form, change)
        for line in _uneven(obj.vo):
            self.message_user(request, line, messages.WARNING)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, and above it which share a task would get."""
        form = TryForm.taken_from(request)
        faults = {name: f"it takes no tasks: {fault}" for name, fault in bad_patterns(GlobalShare.objects.all())}
        trial = _tried(form.number) if form.number else None
        context = {"try_form": form, "tried": trial, "what": "share", "faults": faults}
        return super().changelist_view(request, {**(extra_context or {}), **context})


@admin.register(ShareStanding)
class ShareStandingAdmin(ReadOnlyAdmin):
    """Where shares stand, as counted last; the page of shares shows it as a tree."""

    list_display = ("share_id", "percent", "target", "hs06_running", "hs06_queued", "entitled", "place", "at")
    search_fields = ("share__name",)


@admin.register(WorkQueueStanding)
class WorkQueueStandingAdmin(ReadOnlyAdmin):
    list_display = ("work_queue", "vo", "percent", "target", "hs06_running", "hs06_queued", "entitled", "place", "at")
    list_select_related = ("work_queue",)
    search_fields = ("work_queue__queue_name",)


@admin.register(ThrottleVerdict)
class ThrottleVerdictAdmin(ReadOnlyAdmin):
    """Verdicts of the throttler, newest first; equal ones in a row are one."""

    list_display = (
        "id", "vo", "prod_source_label", "unit", "resource_type", "decision", "rule", "reason", "max_jobs", "n_times", "last_at",
    )  # fmt: skip
    list_filter = ("decision", VoFilter)
    search_fields = ("=unit",)
    search_help_text = "Share or work queue, or number of the verdict."
    number_fields = ("id",)


def _uneven(vo: str) -> list[str]:
    """Sentences on siblings whose weights do not sum to 100: they are relative, so that is allowed."""
    sums: dict[str | None, float] = defaultdict(float)
    for share in GlobalShare.objects.filter(vo=vo):
        sums[share.parent_id] += share.value
    return [
        f"Shares {f'below {parent}' if parent else 'at the top'} sum to {total:g}, not to 100: each is a part of {total:g}."
        for parent, total in sums.items()
        if total != 100
    ]


def _tried(task_id: int) -> SafeString:
    """Which share would take a task now, and what kept it from the leaves that were asked before."""
    columns = Task.objects.filter(pk=task_id).values().first()
    if columns is None:
        return format_html("There is no task {}.", task_id)
    tree = trees().get(columns["vo"])
    if tree is None:
        return format_html("Task {}: its VO {} has no shares.", task_id, columns["vo"])
    mapped = tree.share_of(columns | {"gshare": ""})
    head = format_html("Task {}: share {}; now it has {}.", task_id, mapped, columns["gshare"] or "none")
    return head + format_html_join("", "<br>{}: {}", ((each.leaf, _sentence(each)) for each in trials(tree.leaves, columns)))


def _sentence(each: LeafTrial) -> str:
    if not each.attribute:
        return "takes it"
    return f"{spelled(each.attribute.replace('_', ''))} {each.pattern} does not match {each.have or 'an empty text'}"
