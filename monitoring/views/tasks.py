"""The page of one task. Why it is where it is has pages of its own (`monitoring.views.why`)."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponseBase

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import VoScope, may
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import headline, reasons
from monitoring.queries.changes import task_moves
from monitoring.queries.database import alias
from monitoring.queries.jobs import job_rows, visible_jobs
from monitoring.queries.task import find_task, task_facts
from monitoring.tables import keyset
from monitoring.tables.selection import read
from monitoring.views.page import page, scope_of, show
from monitoring.wording import WORDS
from workqueues.models import Task
from workqueues.rules.task.commands import COMMANDS, Command
from workqueues.states import TASK

JOBS_SHOWN = 50


@page("task:read")
def task(request: HttpRequest, task_id: int) -> HttpResponseBase:
    """One task: progress, datasets, jobs, history, parameters."""
    scope = scope_of(request)
    found = found_task(task_id, scope)
    facts = task_facts(found, scope)
    status = task_status(found, alias())
    selection = read(request.GET)
    jobs = visible_jobs(scope_of(request, "job:read")).filter(task_id=task_id)
    context = {
        "task": found,
        "facts": facts,
        "headline": headline(status),
        "throttled": bool(status.throttle),
        "waits": any(reason.tone in ("wait", "bad") for reason in reasons(status)),
        "word": WORDS["task"][found.status],
        "final": found.status in TASK.final,
        "selection": selection,
        "page": keyset.page(jobs, job_rows, JOBS_SHOWN, selection.cursor, narrow=True),
        "moves": task_moves(task_id),
        "commands": commands(request, found),
    }
    return show(request, "task.html", "tasks", context, knows=("cursor", "limit"))


def found_task(task_id: int, scope: VoScope) -> Task:
    """The task, if the visitor may see it; else 404."""
    found = find_task(task_id, scope)
    if found is None:
        raise Http404(f"There is no task {task_id}, or it belongs to a VO that you cannot look into.")
    return found


def commands(request: HttpRequest, task: Task) -> list[Command]:
    """The commands that the visitor may give this task in the state that it is in."""
    visitor = authenticate(request)
    return [
        command
        for command in COMMANDS.values()
        if task.status in command.states and may(visitor, command.right.permission, task.vo, task.user_name)
    ]
