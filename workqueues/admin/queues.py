"""Work queues, to edit with what is wrong with them; locks of agents and keys of submissions, to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from broker_site.foundation.adminpages import ReadOnlyAdmin, row_link
from broker_site.foundation.gdpconfig.admin.steered import SteeredAdmin, SteeredForm
from broker_site.foundation.gdpconfig.changesets import Place
from workqueues.admin.trying import TryForm
from workqueues.models import ProcessLock, Submission, Task, WorkQueue
from workqueues.queries.steered_rows import WORK_QUEUE_COLUMNS, queue_place, split_name
from workqueues.queries.work_queues import WorkQueues, definition, unique_name
from workqueues.rules.work_queues.lint import warnings
from workqueues.rules.work_queues.task_attributes import ATTRIBUTES, spelled

FIELDS = (
    "queue_name", "queue_order", "status", "vo", "queue_type", "criteria", "variables", "queue_share", "stretchable",
    "is_partition", "partition", "queue_function",
)  # fmt: skip


class WorkQueueForm(SteeredForm):
    """A work queue that is held to the rules of its criteria and to the queues beside it; name, label and VO stay."""

    places = {"key": "queue_name"}

    class Meta:
        model = WorkQueue
        fields = FIELDS
        widgets = {
            "criteria": forms.Textarea(attrs={"rows": 3, "cols": 80}),
            "variables": forms.Textarea(attrs={"rows": 2, "cols": 80}),
            "status": forms.Select(choices=[("active", "active"), ("inactive", "inactive")]),
        }

    def line_place(self, row: WorkQueue) -> Place:
        return queue_place(row)

    def line_columns(self, cleaned: Mapping[str, Any]) -> dict[str, Any]:
        partition = cleaned["partition"]
        columns = {column.name: cleaned[column.name] for column in WORK_QUEUE_COLUMNS}
        return columns | {"partition": unique_name(partition) if partition else ""}


@admin.register(WorkQueue)
class WorkQueueAdmin(SteeredAdmin):
    """Partitions of the workload: which tasks each takes, in order, and its share."""

    form = WorkQueueForm
    fields = (*FIELDS, "attributes", "why", "seen")
    list_display = ("queue_order", "queue_name", "queue_type", "vo", "queue_share", "is_partition", "partition", "criteria",
                    "status")  # fmt: skip
    list_display_links = ("queue_name",)
    list_select_related = ("partition",)
    ordering = ("queue_order",)
    search_fields = ("queue_name",)
    change_list_template = "admin/workqueues/trying.html"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Tasks and keys of the configuration know a queue by its name, so that stays."""
        return ("attributes",) if obj is None else ("attributes", "queue_name", "vo", "queue_type")

    def pk_of(self, place: Place) -> int:
        name, label = split_name(place.name)
        return WorkQueue.objects.values_list("pk", flat=True).get(queue_name=name, queue_type=label, vo=place.vo)

    def place_of(self, obj: WorkQueue) -> Place:
        return queue_place(obj)

    @admin.display(description="Attributes of tasks")
    def attributes(self, _queue: WorkQueue) -> str:
        return ", ".join(sorted(map(spelled, ATTRIBUTES)))

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Save, and tell what the queue does together with the others."""
        super().save_model(request, obj, form, change)
        for line in _warned().get(definition(obj).name, []):
            self.message_user(request, f"{obj}: {line}", messages.WARNING)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, and above it which queue a task would get and why."""
        form = TryForm.taken_from(request)
        tried = _tried(form.number) if form.number else None
        faults = {name: f"it takes no tasks: {fault}" for name, fault in WorkQueues.load().faults.items()}
        context = {"try_form": form, "tried": tried, "what": "work queue", "warned": _warned(), "faults": faults}
        return super().changelist_view(request, {**(extra_context or {}), **context})


def _warned() -> dict[str, list[str]]:
    """Active queue -> what an operator should know of it beside the others."""
    return warnings([definition(row) for row in WorkQueue.objects.filter(status="active").select_related("partition")])


def _tried(task_id: int) -> SafeString:
    """Which work queue would take a task now, and what the ones before it said."""
    columns = Task.objects.filter(pk=task_id).values().first()
    if columns is None:
        return format_html("There is no task {}.", task_id)
    mapped = WorkQueues.load().mapped(columns)
    head = format_html("Task {}: {}.", task_id, f"work queue {mapped.queue}" if mapped.queue else "no work queue takes it")
    sentences = {True: "takes it", False: "its criteria do not hold", None: "its criteria compare something that is not set"}
    return head + format_html_join("", "<br>{}: {}", ((t.queue, t.out_of_scope or sentences[t.verdict]) for t in mapped.trials))


@admin.register(ProcessLock)
class ProcessLockAdmin(ReadOnlyAdmin):
    list_display = ("component", "vo", "prod_source_label", "work_queue_id", "resource_type", "locked_by", "locked_time")
    search_fields = ("=locked_by", "=component")


@admin.register(Submission)
class SubmissionAdmin(ReadOnlyAdmin):
    """Idempotency keys and the tasks they gave."""

    list_display = ("id", "user_name", "key", "task", "at")
    search_fields = ("=user_name", "=key")
    search_help_text = "User, key, or number of the submission."
    number_fields = ("id",)
    task = row_link("task", "workqueues_task", "task_id")
