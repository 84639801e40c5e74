"""An act on many tasks or jobs: what it would touch, asked before it begins; then how far it is and what became of each."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse, QueryDict

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.models import User
from broker_site.foundation.kernel import clock
from broker_site.foundation.rest.paging import LARGEST_ID
from brokerage.api.filtering import JobFilter
from brokerage.models import BulkAction, BulkTarget
from brokerage.queries.bulk_actions import actions_of, may_stop
from monitoring.queries.database import alias
from monitoring.queries.jobs import visible_jobs
from monitoring.queries.tasks import visible_tasks
from monitoring.views.page import page, scope_of, show
from workqueues.api.filtering import TaskFilter

READ, MAKE = "bulk:read", "bulk:make"
ACTS = {"tasks": ("kill", "retry", "pause", "resume", "priority"), "jobs": ("kill", "retry")}
MOST = 20_000
SAMPLE, MOST_SHOWN = 10, 200
OUTCOMES = ("skipped", "not_done", "done")
"""In this order they are shown."""
LONGEST_ID = 19
"""Digits of a number that is beyond every row."""
KNOWN = ("of", "act", "id", "all", "filter")


@page(READ)
def bulk_new(request: HttpRequest) -> HttpResponseBase:
    """How many rows the selection has now, and the form that begins. Nothing is done yet."""
    asked = request.GET
    of, act = asked.get("of", ""), asked.get("act", "")
    fault, ids, wanted, n = "", list[int](), "", 0
    rows: QuerySet[Any] | None = None
    if of not in ACTS or act not in ACTS[of]:
        fault = "Choose what to do with them."
    elif asked.get("all"):
        rows, wanted, fault = _matching(request, of)
    else:
        ids = [int(text) for text in asked.getlist("id") if text.isascii() and text.isdigit() and len(text) < LONGEST_ID]
        rows = _table(request, of).filter(id__in=ids)
    if rows is not None and not fault:
        n = len(rows.order_by().values_list("id", flat=True)[: MOST + 1])
        if not n:
            fault = "Nothing is selected: mark rows of the list, or choose all that match."
        elif n > MOST:
            fault = f"More than {MOST:,} match: narrow the filter."
    context: dict[str, Any] = {
        "of": of if of in ACTS else "tasks",
        "act": act,
        "fault": fault,
        "n": n,
        "ids": ids,
        "filter": wanted,
        "words": ", ".join(f"{name}={value}" for name, values in QueryDict(wanted).lists() for value in values),
        "sample": list(rows.order_by("-id")[:SAMPLE]) if rows is not None and not fault else [],
        "moment": clock.now(),
        "back": asked.urlencode(),
    }
    return show(request, "bulk_new.html", of if of in ACTS else "tasks", context, status=400 if fault else 200, knows=KNOWN)


@page(READ, ())
def bulk(request: HttpRequest, action_id: int, data: bool = False) -> HttpResponseBase:
    """How far an act is; skipped targets first, each with its reason. Of those that the caller may see."""
    caller = authenticate(request)
    actions = actions_of(caller, alias())
    action = actions.filter(pk=action_id).first() if action_id <= LARGEST_ID else None
    if action is None:
        raise Http404(f"There is no act {action_id} that you may see.")
    # Not on the connection of the pages: its role does not read users.
    who = User.objects.values_list("username", flat=True).get(pk=action.user_id)
    targets = BulkTarget.objects.using(alias()).filter(action=action)
    shown = [row for outcome in OUTCOMES for row in targets.filter(outcome=outcome).order_by("-id")[:MOST_SHOWN]]
    told = {name: getattr(action, name) for name in ("n", "done", "skipped", "not_done")}
    told["left"] = told["n"] - told["done"] - told["skipped"] - told["not_done"]
    if data:
        names = ("id", "of", "act", "options", "comment", "selection", "at", "stopped_at", "stopped_by", "ended_at")
        rows = [{"target_id": row.target_id, "outcome": row.outcome, "said": row.said} for row in shown]
        return JsonResponse({**{name: getattr(action, name) for name in names}, "who": who, **told, "targets": rows})
    stops = action.stopped_at is None and action.ended_at is None and may_stop(caller, action)
    selection = [(name, ",".join(map(str, value)) if isinstance(value, list) else value) for name, value in _chosen(action)]
    context = {"action": action, "who": who, "targets": shown, "most": MOST_SHOWN, "may_stop": stops, "selection": selection}
    return show(request, "bulk.html", action.of, {**context, **told})


def _chosen(action: BulkAction) -> list[tuple[str, Any]]:
    """The filter, by name; pages send lists, REST texts too."""
    return list((action.selection or {}).items())


def _table(request: HttpRequest, of: str) -> QuerySet[Any]:
    return visible_tasks(scope_of(request)) if of == "tasks" else visible_jobs(scope_of(request, "job:read"))


def _matching(request: HttpRequest, of: str) -> tuple[QuerySet[Any] | None, str, str]:
    """The rows that match the filter of the list, that filter, and what is wrong with it."""
    query = QueryDict(request.GET.get("filter", "").removeprefix("?"))
    filters = TaskFilter if of == "tasks" else JobFilter
    named = filters.renamed(query)
    chosen = QueryDict(mutable=True)
    for name in filters.base_filters:
        if str(named.get(name) or "").strip():
            chosen[name] = str(named[name])
    if not chosen:
        return None, "", "All rows of a list without filter are too many: filter it first."
    found = filters(chosen, queryset=_table(request, of))
    return (found.qs, chosen.urlencode(), "") if found.form.is_valid() else (None, "", "The filter cannot be used.")
