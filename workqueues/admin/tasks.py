"""Tasks, with the commands on them, and what they were submitted with."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.readonlyadmin import ReadOnlyAdmin
from broker_site.foundation.adminpages.cells import VoFilter, cut, lists, pretty
from workqueues.ledger.orders import give
from workqueues.models import JobParamsTemplate, Task, TaskParams

MOST_AT_ONCE = 200
"""Tasks that one command of the admin may be for."""

_IDENTITY = (
    "id", "task_name", "user_name", "vo", "working_group", "country_group", "prod_source_label", "task_type", "processing_type",
    "request_type", "campaign", "req_id", "parent_tid", "ticket_id", "ticket_system_type", "gshare", "work_queue",
    "resource_type",
)  # fmt: skip
_STATE = (
    "status", "old_status", "status_since", "ended_at", "epoch", "error_dialog", "progress", "failure_rate", "goal",
    "term_condition", "task_priority", "current_priority", "attempt_nr", "next_look_at", "command", "command_by",
    "command_comment", "command_time", "super_status", "ami_flag",
)  # fmt: skip
_TIMES = (
    "creation_date", "modification_time", "start_time", "frozen_time", "throttled_time", "num_throttled", "assessment_time",
    "rescue_time", "locked_by", "locked_time",
)  # fmt: skip
_PLACE = ("cloud", "site", "nucleus", "split_rule", "event_service", "use_jumbo")
_SOFTWARE = ("architecture", "trans_uses", "trans_home", "trans_path", "container_name")


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    """Tasks to read; kill, finish and retry through the ledger."""

    list_display = ("id", "task_name", "status", "progress", "user_name", "vo", "current_priority", "status_since", "reason")
    list_display_links = ("id", "task_name")
    list_filter = ("status", VoFilter, "work_queue")
    search_fields = ("^task_name", "=user_name")
    search_help_text = "Number, beginning of the name, or owner."
    number_fields = ("id", "parent_tid", "req_id")
    list_select_related = ("work_queue",)
    actions = ("kill", "finish_softly", "finish_now", "retry")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """All columns, grouped."""
        named = {*_IDENTITY, *_STATE, *_TIMES, *_PLACE, *_SOFTWARE}
        needs = [f.name for f in self.opts.concrete_fields if f.name not in named]
        return (
            (None, {"fields": ("belonging", *_IDENTITY)}),
            ("State", {"fields": _STATE}),
            ("Times and claim", {"fields": _TIMES}),
            ("Where", {"fields": _PLACE}),
            ("Software", {"fields": _SOFTWARE}),
            ("Needs", {"fields": needs}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Those that are no columns."""
        return ("belonging",)

    @admin.display(description="reason")
    def reason(self, task: Task) -> str:
        """Why it is where it is, cut."""
        return cut(task.error_dialog)

    @admin.display(description="lists")
    def belonging(self, task: Task) -> SafeString:
        """What belongs to the task."""
        of = {"task_id": task.id}
        return lists(
            [
                ("parameters", "workqueues_taskparams", of),
                ("datasets", "workqueues_dataset", of),
                ("files", "workqueues_file", of),
                ("history", "workqueues_taskchange", of),
                ("jobs", "brokerage_job", of),
                ("decisions", "brokerage_decision", of),
                ("children", "workqueues_task", {"parent_tid": task.id}),
            ]
        )

    def has_command_permission(self, request: HttpRequest) -> bool:
        """Whoever may command a task at all; which ones is asked for each."""
        return may(authenticate(request), "task:command")

    @admin.action(description="Kill selected tasks and all their jobs", permissions=["command"])
    def kill(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        """Kill."""
        self._order(request, queryset, "kill", "are being killed")

    @admin.action(description="Finish selected tasks when their running jobs have ended", permissions=["command"])
    def finish_softly(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        """Finish, sparing running jobs."""
        self._order(request, queryset, "finish", "are being finished")

    @admin.action(description="Finish selected tasks now, stopping their jobs", permissions=["command"])
    def finish_now(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        """Finish, stopping running jobs."""
        self._order(request, queryset, "finish", "are being finished", soft=False)

    @admin.action(description="Retry selected tasks", permissions=["command"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        """Retry."""
        self._order(request, queryset, "retry", "are being retried")

    def _order(self, request: HttpRequest, queryset: QuerySet[Task], name: str, words: str, *, soft: bool = True) -> None:
        """Give the command to each task and tell how many took it and why the others did not."""
        tasks = list(queryset.order_by("id")[: MOST_AT_ONCE + 1])
        if len(tasks) > MOST_AT_ONCE:
            self.message_user(request, f"At most {MOST_AT_ONCE} tasks at once; nothing was done.", messages.ERROR)
            return
        principal, taken, refused = authenticate(request), 0, Counter[str]()
        for task in tasks:
            try:
                give(principal, task, name, "from the admin", soft=soft)
                taken += 1
            except Refused as no:
                refused[no.detail] += 1
        if taken:
            self.message_user(request, f"{taken} tasks {words}.", messages.SUCCESS)
        for detail in list(refused)[:10]:
            self.message_user(request, detail, messages.WARNING)
        if len(refused) > 10:
            self.message_user(request, f"and {len(refused) - 10} more were refused.", messages.WARNING)


@admin.register(TaskParams)
class TaskParamsAdmin(ReadOnlyAdmin):
    """What tasks were submitted with."""

    list_display = ("task",)
    list_select_related = ("task",)
    number_fields = ("task_id",)
    search_fields = ("=task__task_name",)
    search_help_text = "Number or name of the task."

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """The parameters as indented text."""
        return ["task", "parameters"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The one that is no column."""
        return ("parameters",)

    @admin.display(description="parameters")
    def parameters(self, params: TaskParams) -> SafeString:
        """Indented."""
        return pretty(params.task_params)


@admin.register(JobParamsTemplate)
class JobParamsTemplateAdmin(ReadOnlyAdmin):
    """The templates from which job parameters are filled."""

    list_display = ("task", "job_params_template")
    list_select_related = ("task",)
    number_fields = ("task_id",)
    search_fields = ("=task__task_name",)
    search_help_text = "Number or name of the task."
