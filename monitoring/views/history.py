"""Pages of what a queue and a share did over time, with their JSON and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase

from broker_site.foundation.access.problems import problem_response
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from monitoring.queries.history import Step, history
from monitoring.queries.queue_history import queue_history
from monitoring.queries.queues import find_queue
from monitoring.queries.series import USUAL_WINDOW, WINDOWS
from monitoring.queries.share_history import ShareStep, find_share, share_history, users_of
from monitoring.tables.exports import json_answer
from monitoring.views.export import export
from monitoring.views.page import page, scope_of, show
from monitoring.views.throughput import choice

READ = "job:read"
KNOWN = ("window",)


def window_of(request: HttpRequest) -> tuple[str, list[str], HttpResponseBase | None]:
    """The window that is asked for, what is wrong with it in words, and the answer where JSON or CSV were asked for."""
    faults: list[str] = []
    window = choice(request, "window", list(WINDOWS), faults, USUAL_WINDOW)
    wrong = [Problem("window", "one_of", f"one of {', '.join(WINDOWS)}")]
    return (
        window,
        faults,
        problem_response(400, "Bad parameters", "Some parameters of the address cannot be used.", wrong) if faults else None,
    )


def data(
    request: HttpRequest, form: str, name: str, kind: type[Any], rows: Sequence[Any], more: Mapping[str, Any]
) -> HttpResponseBase:
    """Rows as JSON or CSV."""
    if form == "csv":
        return export(request, kind, rows, name)
    return json_answer(rows, {**more, "as_of": clock.now()})


@page(READ, KNOWN)
def queue_plots(request: HttpRequest, name: str, format: str = "html") -> HttpResponseBase:  # noqa: A002 - as in the address
    """Jobs by state, what they did, with which errors they ended, idle slots, and limits beside what is used."""
    row = find_queue(name)
    if row is None:
        raise Http404(f"There is no queue {name[:60]}.")
    window, faults, refusal = window_of(request)
    if refusal and format != "html":
        return refusal
    scope = scope_of(request, READ)
    if format != "html":
        jobs = history(scope, window, {"queue": row.name})
        more = {"queue": row.name, "window": window, "step_s": jobs.step_s, "counted_at": jobs.counted_at}
        return data(request, format, f"queue-{row.name}", Step, jobs.steps, more)
    found = queue_history(row, scope, window)
    context = {"queue": row, "found": found, "window": window, "windows": list(WINDOWS), "faults": faults}
    return show(request, "queue_plots.html", "queues", context, knows=KNOWN)


@page(READ, KNOWN)
def share(request: HttpRequest, name: str, format: str = "html") -> HttpResponseBase:  # noqa: A002 - as in the address
    """What a share used beside its target, what its jobs did, and who uses it."""
    scope = scope_of(request, READ)
    row = find_share(name, scope)
    if row is None:
        raise Http404(f"There is no share {name[:60]}, or it belongs to a VO that you cannot look into.")
    window, faults, refusal = window_of(request)
    if refusal and format != "html":
        return refusal
    found = share_history(row, scope, window)
    if format == "csv":
        return data(request, format, f"share-{row.name}", ShareStep, found.steps, {})
    users = users_of(row, scope)
    if format == "json":
        more = {"share": row.name, "vo": row.vo, "percent": row.percent, "window": window, "step_s": found.history.step_s}
        told = {"counted_at": found.counted_at, "users": [asdict(user) for user in users.rows]}
        return data(request, format, row.name, ShareStep, found.steps, {**more, **told})
    context = {"share": row, "found": found, "users": users, "window": window, "windows": list(WINDOWS), "faults": faults}
    return show(request, "share.html", "shares", context, knows=KNOWN)
