"""Jobs and what belongs to them, task queues and pilots, to read."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.adminpages import ReadOnlyAdmin, cut, pretty, row
from brokerage.admin.requirements import places_text, values_text
from brokerage.ledger.job_commands import KILL, MOST_AT_ONCE, RETRY, kill_listed, retry_job, told_of_kills
from brokerage.models import (
    ComputingQueue,
    IdleHour,
    IdleSlot,
    Job,
    JobChange,
    JobInput,
    JobOpening,
    JobResult,
    JobRetryHistory,
    JobSpec,
    MisfitQueue,
    Pilot,
    PlacementRound,
    TaskQueue,
)
from brokerage.queries.command_lines import command_line
from brokerage.rules.dispatch.settlement import first_line
from workqueues.models import Task


class OfJob(ReadOnlyAdmin):
    """A table whose rows belong to jobs; a number in the search is that of the job."""

    number_fields: tuple[str, ...] = ("job_id",)
    search_help_text = "Number of the job."

    @admin.display(description="job", ordering="job_id")
    def job_link(self, obj: Any) -> SafeString | str:
        return row("brokerage_job", obj.job_id)


@admin.action(description="Kill selected jobs")
def kill_selected(model_admin: admin.ModelAdmin[Job], request: HttpRequest, queryset: QuerySet[Job]) -> None:
    """Say what became of them."""
    ids = list(queryset.order_by("id").values_list("id", flat=True)[:MOST_AT_ONCE])
    model_admin.message_user(request, told_of_kills(kill_listed(authenticate(request), ids, "from the admin")))


@admin.action(description="Retry selected jobs whose inputs were given up")
def retry_selected(model_admin: admin.ModelAdmin[Job], request: HttpRequest, queryset: QuerySet[Job]) -> None:
    """How many inputs have more tries, and why others have not."""
    jobs = list(queryset.order_by("id")[:MOST_AT_ONCE])
    caller, tasks, n, refused = authenticate(request), Task.objects.in_bulk({job.task_id for job in jobs}), 0, dict[str, int]()
    for job in jobs:
        try:
            n += retry_job(caller, job, tasks[job.task_id], "from the admin")
        except Refused as no:
            refused[no.detail] = job.id
    model_admin.message_user(request, f"{n} inputs have more tries.")
    for detail in list(refused)[:10]:
        model_admin.message_user(request, detail, messages.WARNING)


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """Jobs: the row that scheduling touches, with links to the rest; kill and retry through the ledger."""

    actions = (kill_selected, retry_selected)
    list_display = (
        "id", "kind", "status", "sub_status", "task", "computing_queue", "attempt_nr", "priority", "status_since", "ended_at",
    )  # fmt: skip
    list_filter = ("kind", "status", "computing_queue")
    list_select_related = ("computing_queue",)
    search_fields = ("=sub_status",)
    search_help_text = "Number of job or task."
    number_fields = ("id", "task_id")
    related = (
        ("description", "brokerage_jobspec", "job_id"),
        ("inputs", "brokerage_jobinput", "job_id"),
        ("outputs", "workqueues_file", "out_job_id"),
        ("result", "brokerage_jobresult", "job_id"),
        ("history", "brokerage_jobchange", "job_id"),
        ("retries of it", "brokerage_jobretryhistory", "old_job_id"),
    )

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Those whose right the caller has for some jobs; for which ones is asked job by job."""
        rights = {"kill_selected": KILL, "retry_selected": RETRY}
        caller = authenticate(request)
        return {name: action for name, action in super().get_actions(request).items() if may(caller, rights[name])}

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """The lists that belong to it, then all columns."""
        return ["task" if name == "task_id" else name for name in super().get_fields(request, obj)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), "task")

    @admin.display(description="task", ordering="task_id")
    def task(self, job: Job) -> SafeString | str:
        return row("workqueues_task", job.task_id)


@admin.register(JobSpec)
class JobSpecAdmin(OfJob):
    list_display_links = ("job_name",)
    list_display = ("job_link", "job_name", "vo", "user_name", "transformation", "ram_mb", "disk_mb", "walltime_s", "created_at")
    search_fields = ("=job_name", "=user_name")
    search_help_text = "Number or whole name of the job, or its user."

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """All columns, the command line whole."""
        fields = [name for name in super().get_fields(request, obj) if name != "job_values"]
        return ["whole_line" if name == "job_parameters" else name for name in fields]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), "whole_line")

    @admin.display(description="job parameters")
    def whole_line(self, spec: JobSpec) -> str:
        return command_line(spec)


@admin.register(JobInput)
class JobInputAdmin(OfJob):
    list_display = ("id", "job_link", "file", "status", "tracked", "attempt_nr")
    list_filter = ("tracked",)
    search_fields = ("=id",)
    number_fields = ("job_id", "file_id")
    search_help_text = "Number of job or file."

    @admin.display(description="file", ordering="file_id")
    def file(self, use: JobInput) -> SafeString | str:
        return row("workqueues_file", use.file_id)


@admin.register(JobResult)
class JobResultAdmin(OfJob):
    list_display_links = ("reported_status",)
    list_display = ("job_link", "reported_status", "error_code", "message", "exit_code", "host", "end_time")
    search_fields = ("=error_code", "=host")
    search_help_text = "Number of the job, error code, or host."

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """All columns, the metrics as indented text."""
        return [*(name for name in super().get_fields(request, obj) if name != "metrics"), "measured"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("measured",)

    @admin.display(description="message")
    def message(self, result: JobResult) -> str:
        return cut(first_line(result.error_message))

    @admin.display(description="metrics")
    def measured(self, result: JobResult) -> SafeString:
        return pretty(result.metrics)


@admin.register(JobChange)
class JobChangeAdmin(OfJob):
    list_display = ("id", "at", "job_link", "old", "new", "epoch", "who", "why")
    search_fields = ("=who",)
    search_help_text = "Number of the job, or who."


@admin.register(JobRetryHistory)
class JobRetryHistoryAdmin(ReadOnlyAdmin):
    list_display = ("id", "old_job", "new_job", "origin_job", "relation_type", "task", "at")
    number_fields = ("old_job_id", "new_job_id", "origin_job_id")
    search_fields = ("=relation_type",)
    search_help_text = "Number of a job."

    @admin.display(description="from")
    def old_job(self, retry: JobRetryHistory) -> SafeString | str:
        return row("brokerage_job", retry.old_job_id)

    @admin.display(description="to")
    def new_job(self, retry: JobRetryHistory) -> SafeString | str:
        return row("brokerage_job", retry.new_job_id)

    @admin.display(description="origin")
    def origin_job(self, retry: JobRetryHistory) -> SafeString | str:
        return row("brokerage_job", retry.origin_job_id)

    @admin.display(description="task")
    def task(self, retry: JobRetryHistory) -> SafeString | str:
        return row("workqueues_task", retry.task_id)


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
        "id", "bound_to", "vo", "prod_source_label", "gshare", "resource_type", "core_count", "ram_mb", "disk_mb",
        "walltime_s", "owner", "owner_group", "used_at",
    )  # fmt: skip
    list_filter = ("computing_queue",)
    list_select_related = ("computing_queue",)
    number_fields = ("id",)
    search_fields = ("=vo", "=owner", "=owner_group")
    search_help_text = "Number, VO, owner or group."

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """All columns, the values and places of the requirement set whole."""
        return ["requires" if name == "requirement_set" else name for name in super().get_fields(request, obj)] + ["places"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), "requires", "places")

    @admin.display(description="computing queue", ordering="computing_queue", empty_value="open")
    def bound_to(self, task_queue: TaskQueue) -> ComputingQueue | None:
        return task_queue.computing_queue

    @admin.display(description="requires of several values")
    def requires(self, task_queue: TaskQueue) -> SafeString | str:
        return values_text(task_queue.requirement_set_id)

    @admin.display(description="computing queues to which its jobs may go")
    def places(self, task_queue: TaskQueue) -> SafeString | str:
        if task_queue.computing_queue_id is not None:
            return row("brokerage_computingqueue", task_queue.computing_queue_id, task_queue.computing_queue)
        return places_text(task_queue.requirement_set_id)


@admin.register(JobOpening)
class JobOpeningAdmin(ReadOnlyAdmin):
    """Jobs that wait at a queue, and when they are open to others."""

    list_display = ("job_id", "task_queue", "due")
    number_fields = ("job_id",)
    ordering = ("due",)
    search_fields = ("=job_id",)
    search_help_text = "Number of the job."


@admin.register(IdleSlot)
class IdleSlotAdmin(ReadOnlyAdmin):
    """Slots whose pilots asked in vain, the last ones first."""

    list_display = ("pilot_id", "queue", "since", "until", "core_count", "memory_mb", "disk_mb", "walltime_s", "beside_since")
    list_filter = ("queue",)
    list_select_related = ("queue",)
    ordering = ("-since",)
    search_fields = ("=vo",)
    search_help_text = "VO whose work alone the pilot may do."


@admin.register(PlacementRound)
class PlacementRoundAdmin(ReadOnlyAdmin):
    """The last rounds that made jobs."""

    list_display = ("id", "at", "last_change")
    ordering = ("-id",)


@admin.register(MisfitQueue)
class MisfitQueueAdmin(ReadOnlyAdmin):
    """Where jobs wait that fit none of the slots that idle there."""

    list_display = ("queue", "seen_at", "task_queues")
    list_select_related = ("queue",)
    ordering = ("-seen_at",)


@admin.register(IdleHour)
class IdleHourAdmin(ReadOnlyAdmin):
    """How long slots idled, by queue and hour."""

    list_display = ("queue", "hour", "idle_s", "beside_s", "held_s", "idle", "beside", "held", "longest_s", "why", "why_held")
    list_filter = ("queue",)
    list_select_related = ("queue",)
    ordering = ("-hour",)
    number_fields = ("task_id",)
    search_fields = ("=why",)
    search_help_text = "Number of a task that waited, or the whole reason."
