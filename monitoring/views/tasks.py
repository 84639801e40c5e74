"""The page of one task, and the page that says why it is where it is."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponseBase

from broker_site.access.authentication import authenticate
from broker_site.access.permissions import VoScope, may
from monitoring.explain.decision import MARKS, Told, tell
from monitoring.explain.waiting import DECIDED, Standing, agent_in_turn, headline, reasons, speaks_for
from monitoring.queries.agents import agent_rows
from monitoring.queries.changes import task_moves
from monitoring.queries.decisions import StoredDecision, decisions_of, stored_decision
from monitoring.queries.jobs import job_rows, visible_jobs
from monitoring.queries.task import Relative, find_task, task_facts
from monitoring.queries.waiting import held_files, queue_loads
from monitoring.tables import keyset
from monitoring.tables.selection import read
from monitoring.views.page import page, scope_of, show
from monitoring.wording import WORDS
from workqueues.models import Task
from workqueues.states import TASK

JOBS_SHOWN = 50
MATRIX_ROWS = 100
COMMANDS = ("finish", "retry", "kill")


@page("task:read")
def task(request: HttpRequest, task_id: int) -> HttpResponseBase:
    """One task: progress, datasets, jobs, history, parameters."""
    scope = scope_of(request)
    found = _found(task_id, scope)
    facts = task_facts(found, scope)
    selection = read(request.GET)
    jobs = visible_jobs(scope_of(request, "job:read")).filter(task_id=task_id)
    context = {
        "task": found,
        "facts": facts,
        "verdict": _verdict(found),
        "word": WORDS["task"][found.status],
        "final": found.status in TASK.final,
        "selection": selection,
        "page": keyset.page(jobs, job_rows, JOBS_SHOWN, selection.cursor, narrow=True),
        "moves": task_moves(task_id),
        "commands": commands(request, found),
    }
    return show(request, "task.html", "tasks", context, knows=("cursor", "limit"))


@page("decision:read")
def brokerage(request: HttpRequest, task_id: int) -> HttpResponseBase:
    """Why a task is where it is: what it waits for, and the decisions of the brokerage about it."""
    scope = scope_of(request, "decision:read")
    found = _found(task_id, scope)
    decisions = decisions_of(task_id)
    stored = _chosen(task_id, request.GET.get("decision", ""), decisions[0].id if decisions else None)
    candidate = request.GET.get("queue", "")
    told = tell(stored, candidate, None if request.GET.get("all") else MATRIX_ROWS) if stored else None
    newest = stored is not None and stored.row.id == decisions[0].id
    speaks = stored is not None and newest and speaks_for(found.status, found.status_since, stored.row)
    standing = _standing(found, scope, told if speaks else None)
    context = {
        "task": found,
        "final": found.status in TASK.final,
        "headline": headline(standing),
        "speaks": speaks,
        "word": WORDS["task"][found.status],
        "reasons": reasons(standing),
        "decisions": decisions,
        "stored": stored,
        "newest": newest,
        "told": told,
        "marks": list(MARKS.values()),
        "candidate": candidate,
    }
    return show(request, "brokerage.html", "tasks", context, knows=("decision", "queue", "all"))


def _found(task_id: int, scope: VoScope) -> Task:
    found = find_task(task_id, scope)
    if found is None:
        raise Http404(f"There is no task {task_id}, or it belongs to a VO that you cannot look into.")
    return found


def commands(request: HttpRequest, task: Task) -> list[str]:
    """The commands that the visitor may give this task in the state that it is in."""
    if not may(authenticate(request), "task:command", task.vo, task.user_name):
        return []
    return [name for name in COMMANDS if task.status in TASK.accepting(name)]


def _verdict(task: Task) -> str:
    """What the newest decision says, where that is why the task waits."""
    if task.status not in DECIDED:
        return ""
    newest = decisions_of(task.id)[:1]
    if not newest or not speaks_for(task.status, task.status_since, newest[0]):
        return ""
    stored = stored_decision(task.id, newest[0].id)
    told = tell(stored, most=0) if stored is not None else None
    return told.story.verdict if told is not None and told.story is not None else ""


def _chosen(task_id: int, asked: str, newest: int | None) -> StoredDecision | None:
    if asked:
        found = stored_decision(task_id, int(asked)) if asked.isascii() and asked.isdigit() and len(asked) < 18 else None
        if found is None:
            raise Http404(f"There is no decision {asked[:20]} about task {task_id}.")
        return found
    return stored_decision(task_id, newest) if newest is not None else None


def _standing(task: Task, scope: VoScope, told: Told | None) -> Standing:
    parent = None
    if task.parent_tid and task.parent_tid != task.id and (known := find_task(task.parent_tid, scope)) is not None:
        parent = Relative(known.id, known.task_name, known.status)
    return Standing(
        status=task.status,
        error_dialog=task.error_dialog,
        old_status=task.old_status,
        throttled_time=task.throttled_time,
        command_by=task.command_by,
        parent=parent,
        held=held_files(task.id),
        loads=queue_loads(task.id),
        agent=agent_in_turn(task.status, agent_rows()),
        verdict=told.story.verdict if told is not None and told.story is not None else "",
    )
