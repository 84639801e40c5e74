"""The list of users, and the page of one: tasks, use over time, errors; with JSON and CSV."""

from __future__ import annotations

from dataclasses import asdict

from django.http import Http404, HttpRequest, HttpResponseBase

from broker_site.foundation.kernel import clock
from monitoring.queries.history import Step, history
from monitoring.queries.my_work import LATELY, MOST, my_work
from monitoring.queries.series import WINDOWS
from monitoring.queries.share_history import shares_below
from monitoring.queries.tasks import visible_tasks
from monitoring.queries.users import MOST_LISTED, MOST_USERS, UserRow, user_errors, user_rows
from monitoring.tables.exports import json_answer
from monitoring.views.export import export
from monitoring.views.history import KNOWN, data, window_of
from monitoring.views.page import page, scope_of, show

READ = "job:read"
FILTERS = ("q", "share")
LONGEST = 128


@page(READ, FILTERS)
def users(request: HttpRequest, format: str = "html") -> HttpResponseBase:  # noqa: A002 - as in the address
    """Owners of tasks with their jobs, those with most first; by a part of the name, and of one share."""
    part, share = (request.GET.get(name, "").replace("\0", "")[:LONGEST] for name in FILTERS)
    scope = scope_of(request, READ)
    found = user_rows(scope, shares_below(share, scope), part, MOST_USERS if format == "html" else MOST_LISTED)
    if format == "csv":
        return export(request, UserRow, found.rows, "users")
    if format == "json":
        more = {"count": found.n, "counted_at": found.counted_at, "as_of": clock.now()}
        return json_answer(found.rows, more)
    context = {"found": found, "q": part, "share": share, "query": request.GET.urlencode()}
    return show(request, "users.html", "users", context, knows=FILTERS)


@page(READ, KNOWN)
def user(request: HttpRequest, name: str, format: str = "html") -> HttpResponseBase:  # noqa: A002 - as in the address
    """The tasks of a user, what needs attention first; what their jobs did over time, and with which errors they ended."""
    scope = scope_of(request, READ)
    window, faults, refusal = window_of(request)
    if refusal and format != "html":
        return refusal
    row = next(iter(user_rows(scope, name=name).rows), None)
    work = my_work(name, scope, clock.now())
    if row is None and not work.live and not work.ended and not visible_tasks(scope).filter(user_name=name).exists():
        raise Http404(f"Nobody named {name[:60]} has a task in a VO that you can look into.")
    jobs = history(scope, window, {"user_name": name})
    if format != "html":
        more = {"user": name, "window": window, "step_s": jobs.step_s, "counted_at": jobs.counted_at}
        return data(request, format, f"user-{name}", Step, jobs.steps, {**more, "now": asdict(row) if row else None})
    context = {
        "name": name,
        "row": row,
        "work": work,
        "jobs": jobs,
        "errors": user_errors(name, scope),
        "days": LATELY.days,
        "most": MOST,
        "window": window,
        "windows": list(WINDOWS),
        "faults": faults,
    }
    return show(request, "user.html", "users", context, knows=KNOWN)
