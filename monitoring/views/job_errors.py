"""The page of the errors with which jobs ended, with its JSON and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect

from broker_site.foundation.access.problems import problem_response
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from brokerage.api.filtering import ErrorFilter
from monitoring.queries.error_map import LEVELS, SiteError, map_of, site_errors
from monitoring.queries.job_errors import (
    ALL,
    MOST_ERRORS,
    JobErrorRow,
    JobErrors,
    chosen,
    error_facets,
    error_groups,
    job_errors,
    together,
)  # fmt: skip
from monitoring.queries.levels import counted_at
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
def errors(request: HttpRequest, format: str = "html", by: str = "error") -> HttpResponseBase:  # noqa: A002 - as in the address
    """Each error once, the most frequent first: how many jobs, where, since when, and how it goes; and sites against codes.

    `by`: of JSON and CSV; site: jobs by site and code.
    """
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
    of = ALL if faults else chosen(filters.qs, selection)
    if by == "site":
        told_rows, _ = site_errors(scope, window, of)
        if format == "csv":
            return export(request, SiteError, iter(told_rows), "errors-by-site")
        return json_answer(told_rows, {"window": window, "counted_at": counted_at(), "as_of": clock.now()})
    found = JobErrors([], None, 0) if faults else job_errors(scope, window, of=of)
    if format == "csv":
        return export(request, JobErrorRow, iter(found.rows), "errors")
    if format == "json":
        return json_answer(
            found.rows, {"window": window, "others": found.others, "counted_at": found.counted_at, "as_of": clock.now()}
        )
    context = {
        "found": found,
        "map": map_of(found.at) if found.at else None,
        "levels": range(1, LEVELS + 1),
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
