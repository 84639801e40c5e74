"""Tasks, with the commands on them, and what they were submitted with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.adminpages import ReadOnlyAdmin, VoFilter, cut, pretty
from broker_site.foundation.kernel.registry import Registry
from workqueues.ledger.commands import command_task
from workqueues.models import JobParamsTemplate, Task, TaskParams, TaskThrottle
from workqueues.rules.task.commands import COMMANDS, Action, Command

MOST_AT_ONCE = 200
"""Tasks that one command of the admin may be for."""

_IDENTITY = (
    "id", "task_name", "user_name", "submitted_by", "reads_vos", "vo", "working_group", "country_group", "prod_source_label",
    "task_type", "processing_type", "request_type", "campaign", "req_id", "parent_tid", "ticket_id", "ticket_system_type",
    "gshare", "work_queue", "resource_type",
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


@dataclass(frozen=True, slots=True)
class TaskAction:
    """An action of the list of tasks: what it does with each, given what stands in the fields behind the choice of actions."""

    name: str
    label: str
    permission: str
    act: Callable[[Principal, Task, str, str], str | None]
    """Caller, task, value, comment; gives what `done` does not tell, in a sentence."""
    done: str
    """Follows "5 tasks are"."""


ACTIONS: Registry[TaskAction] = Registry("action on tasks")
"""Those of the commands, and those that apps above add."""


def _command_action(command: Command, action: Action) -> TaskAction:
    def act(caller: Principal, task: Task, _value: str, comment: str) -> str:
        done = command_task(caller, task, command, comment or "from the admin", action.options)
        return done.told if done.alive else ""

    return TaskAction(action.name, action.label, command.right.permission, act, command.during)


for _command in COMMANDS.values():
    for _action in _command.actions:
        ACTIONS.add(_action.name, _command_action(_command, _action))


class ActionFields(ActionForm):
    """What some actions ask for."""

    value = forms.CharField(required=False, max_length=255, label="Value", help_text="of what is changed")
    comment = forms.CharField(required=False, max_length=200, label="Comment")


def _admin_action(action: TaskAction) -> Callable[[admin.ModelAdmin[Task], HttpRequest, QuerySet[Task]], None]:
    """The action on each selected task, then how many took it and why the others did not."""

    def act_on_selected(model_admin: admin.ModelAdmin[Task], request: HttpRequest, queryset: QuerySet[Task]) -> None:
        tasks = list(queryset.order_by("id")[: MOST_AT_ONCE + 1])
        if len(tasks) > MOST_AT_ONCE:
            model_admin.message_user(request, f"At most {MOST_AT_ONCE} tasks at once; nothing was done.", messages.ERROR)
            return
        caller, n_done, refused, told = authenticate(request), 0, Counter[str](), list[str]()
        value, comment = (request.POST.get(name, "")[:most] for name, most in (("value", 255), ("comment", 200)))
        for task in tasks:
            try:
                told += filter(None, [action.act(caller, task, value, comment)])
                n_done += 1
            except Refused as no:
                refused[no.detail] += 1
        if n_done:
            those = "task is" if n_done == 1 else "tasks are"
            model_admin.message_user(request, f"{n_done} {those} {action.done}.", messages.SUCCESS)
        for detail in told[:10]:
            model_admin.message_user(request, detail, messages.INFO)
        for detail in list(refused)[:10]:
            model_admin.message_user(request, detail, messages.WARNING)
        if len(refused) > 10:
            model_admin.message_user(request, f"and {len(refused) - 10} more were refused.", messages.WARNING)

    return act_on_selected


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
    )
    action_form = ActionFields

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
        allowed = [action for action in ACTIONS.values() if may(caller, action.permission)]
        return {action.name: (_admin_action(action), action.name, action.label) for action in allowed}


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
    """Why tasks are throttled, and until when."""

    list_display = ("task_id", "cause", "since", "until", "why")
    list_filter = ("cause",)
    number_fields = ("task_id",)
    search_fields = ("=id",)
    search_help_text = "Number of the task."
