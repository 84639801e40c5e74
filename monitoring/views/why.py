"""Why a task is where it is: what it waits for, the decisions about it, and what would be decided now or if something changed."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase

from broker_site.foundation.kernel.verdict import Problem
from brokerage.queries.task_status import task_status
from brokerage.queries.what_if import NothingToDecide
from brokerage.queries.what_if import what_if as ask_what_if
from brokerage.rules.explain.edits import BadEdits
from brokerage.rules.explain.task_status_text import headline, reasons
from monitoring.explain.decision import MARKS, decision_panel
from monitoring.explain.matrix_filter import HOW, PARAMETERS, SHOWN, read_matrix_filter
from monitoring.explain.what_if import FIELDS, asked_words, form_edits, form_fields, funnel_rows, verdict_changes, weight_rows
from monitoring.queries.database import alias
from monitoring.queries.decisions import DecisionPage, decisions_of, stored_decision
from monitoring.views.details import visible_task
from monitoring.views.page import page, scope_of, show
from monitoring.wording import WORDS
from workqueues.queries.needs_changes import needs_changes
from workqueues.states import TASK

MOST_CHANGED = 40
"""Candidates with another verdict that the page of a what-if lists."""


@page("decision:read")
def brokerage(request: HttpRequest, task_id: int) -> HttpResponseBase:
    """Why a task is where it is: what it waits for, and the decisions of the brokerage about it."""
    scope = scope_of(request, "decision:read")
    row = visible_task(task_id, scope)
    decisions = decisions_of(task_id)
    stored = _decision(task_id, request.GET.get("decision", ""), decisions[0].id if decisions else None)
    candidate = request.GET.get("queue", "")
    panel = decision_panel(stored, candidate, read_matrix_filter(request.GET, stored.facts.row.id)) if stored else None
    newest = stored is not None and stored.facts.row.id == decisions[0].id
    status = task_status(row, alias())
    context = {
        "task": row,
        "final": row.status in TASK.final,
        "headline": headline(status),
        "errors": status.errors,
        "word": WORDS["task"][row.status],
        "reasons": reasons(status),
        "decisions": decisions,
        "changes": needs_changes(task_id, alias()),
        "stored": stored,
        "newest": newest,
        "panel": panel,
        "marks": list(MARKS.values()),
        "hows": HOW,
        "shows": SHOWN,
        "candidate": candidate,
        "queue_of_candidate": candidate.partition("/")[0],
    }
    return show(request, "brokerage.html", "tasks", context, knows=("decision", "queue", *PARAMETERS))


@page("decision:read")
def what_if(request: HttpRequest, task_id: int) -> HttpResponseBase:
    """What the brokerage would decide now, and what if something were different. A form whose address can be kept."""
    row = visible_task(task_id, scope_of(request, "decision:read"))
    problems: tuple[Problem, ...] = ()
    fault, result = "", None
    try:
        result = ask_what_if(row, form_edits(request.GET), lately=True)
    except BadEdits as bad:
        problems = bad.problems
    except NothingToDecide as nothing:
        fault = str(nothing)
    context: dict[str, Any] = {
        "task": row,
        "result": result,
        "problems": problems,
        "fault": fault,
        "fields": form_fields(request.GET, result.ask if result is not None else None),
        "change": request.GET.get("change", ""),
        "edited": any(request.GET.get(name) for name in (*FIELDS, "change")),
        "asked": asked_words(result) if result is not None else [],
        "funnel": funnel_rows(result) if result is not None else [],
        "weights": list(weight_rows(result)) if result is not None else [],
        "moves": verdict_changes(result) if result is not None else [],
        "changed": result.changed[:MOST_CHANGED] if result is not None else (),
        "more": max(len(result.changed) - MOST_CHANGED, 0) if result is not None else 0,
    }
    status = 400 if problems else 200
    return show(request, "what_if.html", "tasks", context, status=status, knows=(*FIELDS, "change"))


def _decision(task_id: int, number: str, newest: int | None) -> DecisionPage | None:
    """The decision of this number, the newest without one, None where there is none; 404 for another number."""
    if not number:
        return stored_decision(task_id, newest) if newest is not None else None
    row = stored_decision(task_id, int(number)) if number.isascii() and number.isdigit() and len(number) < 18 else None
    if row is None:
        raise Http404(f"There is no decision {number[:20]} about task {task_id}.")
    return row
