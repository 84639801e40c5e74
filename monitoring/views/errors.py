"""Pages of refusals and faults: cause, what to do, trace id. Under `.json` and `.csv` the same as problem+json."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from broker_site.foundation.access.problems import problem_response
from monitoring.views.page import wants_data


class Told(NamedTuple):
    """What an error page says: what happened, why as far as is known, and what to do."""

    title: str
    cause: str
    advice: str


BAD_REQUEST = Told("Bad request", "The server could not make sense of the request.", "Go back and try again.")
FORBIDDEN = Told(
    "Not permitted", "You do not have the right to see or do this.", "Ask an operator of your VO for the role you need."
)
NOT_FOUND = Told(
    "Not found",
    "Nothing is at this address, or it belongs to a VO that you cannot look into.",
    "Check the address, or start from a list.",
)
FAULT = Told(
    "Internal error", "This is a fault of the server, not yours.", "Try again; if it stays, report it with the trace id."
)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400."""
    return _answer(request, 400, BAD_REQUEST)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403; a guard says in the exception what is missing."""
    return _answer(request, 403, FORBIDDEN, _said(exception))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404; a page says in the exception what there is not."""
    return _answer(request, 404, NOT_FOUND, _said(exception))


def fault(request: HttpRequest) -> HttpResponse:
    """500, made without the database: that may be what is broken."""
    if wants_data(request):
        return problem_response(500, FAULT.title, FAULT.advice)
    return HttpResponse(render_to_string("error.html", FAULT._asdict()), status=500)


def _said(exception: Exception | None) -> str:
    """The sentence that one of our views gave; Django's own 404 carries the paths that it tried, which tells nobody anything."""
    said = exception.args[0] if exception is not None and exception.args else ""
    return said if isinstance(said, str) else ""


def _answer(request: HttpRequest, status: int, told: Told, cause: str = "") -> HttpResponse:
    if wants_data(request):
        return problem_response(status, told.title, cause or told.cause)
    return render(request, "error.html", {**told._asdict(), "cause": cause or told.cause}, status=status)
