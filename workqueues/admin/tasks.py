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
from broker_site.foundation.adminpages import ReadOnlyAdmin, VoFilter, cut, pretty
from workqueues.ledger.commands import command_task
from workqueues.models import JobParamsTemplate, Task, TaskParams, TaskThrottle
from workqueues.rules.task.commands import COMMANDS, Action, Command

MOST_AT_ONCE = 200
"""Tasks that one command of the admin may be for."""

_IDENTITY = (
    "id", "task_name", "user_name", "submitted_by", "vo", "working_group", "country_group", "prod_source_label", "task_type",
    "processing_type", "request_type", "campaign", "req_id", "parent_tid", "ticket_id", "ticket_system_type", "gshare",
    "work_queue", "resource_type",
)  # fmt: skip
_STATE = (
    "status", "old_status", "status_since", "ended_at", "epoch", "error_dialog", "progress", "failure_rate", "goal",
    "term_condition", "task_priority", "current_priority", "attempt_nr", "next_look_at", "command", "command_by",
    "command_comment", "command_time", "super_status", "ami_flag", "quarantined_at", "faulty_agent", "agent_faults",
)  # fmt: skip
_TIMES = (
    "creation_date", "modification_time", "start_time", "frozen_time", "throttled_time", "num_throttled", "assessment_time",
    "rescue_time", "locked_by", "locked_time",
)  # fmt: skip
_PLACE = ("cloud", "site", "nucleus", "split_rule", "event_service", "use_jumbo")
_SOFTWARE = ("architecture", "trans_uses", "trans_home", "trans_path", "container_name")


def _admin_action(command: Command, action: Action) -> Any:
    """An action of the list: the command on each selected task, then how many took it and why the others did not."""

    @admin.action(description=action.label)
    def command_selected(model_admin: admin.ModelAdmin[Task], request: HttpRequest, queryset: QuerySet[Task]) -> None:
        tasks = list(queryset.order_by("id")[: MOST_AT_ONCE + 1])
        if len(tasks) > MOST_AT_ONCE:
            model_admin.message_user(request, f"At most {MOST_AT_ONCE} tasks at once; nothing was done.", messages.ERROR)
            return
        caller, n_commanded, refused = authenticate(request), 0, Counter[str]()
        for task in tasks:
            try:
                command_task(caller, task, command, "from the admin", action.options)
                n_commanded += 1
            except Refused as no:
                refused[no.detail] += 1
        if n_commanded:
            model_admin.message_user(request, f"{n_commanded} tasks are {command.during}.", messages.SUCCESS)
        for detail in list(refused)[:10]:
            model_admin.message_user(request, detail, messages.WARNING)
        if len(refused) > 10:
            model_admin.message_user(request, f"and {len(refused) - 10} more were refused.", messages.WARNING)

    command_selected.__name__ = action.name
    return command_selected


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    """Tasks to read; commands on them through the ledger."""

    list_display = ("id", "task_name", "status", "progress", "user_name", "vo", "current_priority", "status_since", "reason")
    list_display_links = ("id", "task_name")
    list_filter = ("status", VoFilter, "work_queue", ("quarantined_at", admin.EmptyFieldListFilter))
    search_fields = ("^task_name", "=user_name")
    search_help_text = "Number, beginning of the name, or owner."
    number_fields = ("id", "parent_tid", "req_id")
    list_select_related = ("work_queue",)
    related = (
        ("parameters", "workqueues_taskparams", "task_id"),
        ("datasets", "workqueues_dataset", "task_id"),
        ("files", "workqueues_file", "task_id"),
        ("history", "workqueues_taskchange", "task_id"),
        ("jobs", "brokerage_job", "task_id"),
        ("decisions", "brokerage_decision", "task_id"),
        ("children", "workqueues_task", "parent_tid"),
        ("throttles", "workqueues_taskthrottle", "task_id"),
    )
    actions = tuple(_admin_action(command, action) for command in COMMANDS.values() for action in command.actions)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
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

    @admin.display(description="reason")
    def reason(self, task: Task) -> str:
        return cut(task.error_dialog)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """The commands whose right the caller has for some tasks; for which ones is asked task by task."""
        caller = authenticate(request)
        rights = {action.name: command.right.permission for command in COMMANDS.values() for action in command.actions}
        return {name: action for name, action in super().get_actions(request).items() if may(caller, rights[name])}


@admin.register(TaskParams)
class TaskParamsAdmin(ReadOnlyAdmin):
    list_display = ("task",)
    list_select_related = ("task",)
    number_fields = ("task_id",)
    search_fields = ("=task__task_name",)
    search_help_text = "Number or name of the task."

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return ["task", "parameters"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("parameters",)

    @admin.display(description="parameters")
    def parameters(self, params: TaskParams) -> SafeString:
        return pretty(params.task_params)


@admin.register(JobParamsTemplate)
class JobParamsTemplateAdmin(ReadOnlyAdmin):
    list_display = ("task", "job_params_template")
    list_select_related = ("task",)
    number_fields = ("task_id",)
    search_fields = ("=task__task_name",)
    search_help_text = "Number or name of the task."


@admin.register(TaskThrottle)
class TaskThrottleAdmin(ReadOnlyAdmin):
    """Causes for which tasks are throttled now."""

    list_display = ("task", "cause", "since", "until", "why")
    list_select_related = ("task",)
    list_filter = ("cause",)
    number_fields = ("task_id",)
    search_fields = ("=task__task_name",)
    search_help_text = "Number or name of the task."
