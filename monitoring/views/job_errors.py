"""The page of the errors with which jobs ended, with its JSON and CSV."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase

from broker_site.foundation.access.problems import problem_response
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from monitoring.queries.job_errors import JobErrorRow, job_errors
from monitoring.queries.series import WINDOWS
from monitoring.tables.exports import csv_answer, json_answer
from monitoring.views.page import page, scope_of, show
from monitoring.views.throughput import choice

READ = "job:read"
LONGEST = 60
"""Letters of the name of a queue."""


@page(READ)
def errors(request: HttpRequest, format: str = "html") -> HttpResponseBase:  # noqa: A002 - the name of the address
    """Each error once, the most frequent first: how many jobs, where, since when, and how it goes."""
    faults: list[str] = []
    window = choice(request, "window", list(WINDOWS), faults)
    if faults and format != "html":
        wrong = [Problem("window", "one_of", f"one of {', '.join(WINDOWS)}")]
        return problem_response(400, "Bad parameters", "Some parameters of the address cannot be used.", wrong)
    queue = request.GET.get("queue", "").replace("\0", "")[:LONGEST]
    found = job_errors(scope_of(request, READ), window, queue)
    if format == "csv":
        return csv_answer(JobErrorRow, iter(found.rows), "errors", ())
    if format == "json":
        more = {"window": window, "queue": queue, "others": found.others, "counted_at": found.counted_at, "as_of": clock.now()}
        return json_answer(found.rows, more)
    context = {"found": found, "window": window, "windows": list(WINDOWS), "queue": queue, "faults": faults}
    return show(request, "errors.html", "errors", context, knows=("window", "queue"))
