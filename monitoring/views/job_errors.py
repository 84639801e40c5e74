"""The page of the errors with which jobs ended, with its JSON and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect

from broker_site.foundation.access.problems import problem_response
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from brokerage.api.filtering import ErrorFilter
from monitoring.queries.job_errors import (
    MOST_ERRORS,
    JobErrorRow,
    JobErrors,
    chosen,
    error_facets,
    error_groups,
    job_errors,
    together,
)  # fmt: skip
from monitoring.queries.series import USUAL_WINDOW, WINDOWS
from monitoring.tables.exports import json_answer
from monitoring.tables.form import form_of
from monitoring.tables.selection import Fault, faults_of, read
from monitoring.views.export import export
from monitoring.views.page import page, scope_of, show
from monitoring.views.saved import saved_views
from monitoring.views.throughput import choice

READ = "job:read"
FIRST = ("code", "message", "queue", "user_name", "component")


@page(READ)
def errors(request: HttpRequest, format: str = "html") -> HttpResponseBase:  # noqa: A002 - the name of the address
    """Each error once, the most frequent first: how many jobs, where, since when, and how it goes."""
    told: list[str] = []
    window = choice(request, "window", list(WINDOWS), told, USUAL_WINDOW)
    selection = read(request.GET, ErrorFilter, paged=False, also=("window",))
    if format == "html" and not selection.tidy and request.headers.get("HX-Request") != "true":
        return HttpResponseRedirect(request.path + selection.tidy_address)
    scope = scope_of(request, READ)
    filters = ErrorFilter(selection.parameters, queryset=error_groups(scope), request=request)
    faults = {**faults_of(selection, filters), **together(selection)}
    if format != "html" and (wrong := [*_problems(faults, told), *selection.unknown]):
        return problem_response(400, "Not valid", "Each fault is listed in errors.", wrong)
    found = JobErrors([], None, 0) if faults else job_errors(scope, window, of=chosen(filters.qs, selection))
    if format == "csv":
        return export(request, JobErrorRow, iter(found.rows), "errors")
    if format == "json":
        return json_answer(
            found.rows, {"window": window, "others": found.others, "counted_at": found.counted_at, "as_of": clock.now()}
        )
    context = {
        "found": found,
        "window": window,
        "windows": list(WINDOWS),
        "usual_window": USUAL_WINDOW,
        "told": told,
        "most": MOST_ERRORS,
        "selection": selection,
        "form": form_of(filters, selection, FIRST),
        "faults": faults,
        "facets": () if request.headers.get("HX-Request") == "true" else error_facets(scope, window, selection),
        **saved_views(request, "errors"),
    }
    knows = (*selection.names, *ErrorFilter.aliases, "window")
    return show(request, "errors.html", "errors", context, status=400 if faults else 200, knows=knows)


def _problems(faults: Mapping[str, Fault], told: Sequence[str]) -> list[Problem]:
    """The faults as data tells them; `told`: of the window."""
    wrong = [Problem("window", "one_of", f"one of {', '.join(WINDOWS)}")] if told else []
    return wrong + [Problem(name, fault.rule, fault.message) for name, fault in faults.items()]
