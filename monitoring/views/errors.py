"""Pages of refusals and faults: cause, what to do, trace id. Under `.json` and `.csv` the same as problem+json."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from broker_site.foundation.access.problems import problem_response
from monitoring.views.page import wants_data


class ErrorText(NamedTuple):
    """The words of an error page: what happened, why as far as is known, and what to do."""

    title: str
    cause: str
    advice: str


BAD_REQUEST = ErrorText("Bad request", "The server could not make sense of the request.", "Go back and try again.")
FORBIDDEN = ErrorText(
    "Not permitted", "You do not have the right to see or do this.", "Ask an operator of your VO for the role you need."
)
NOT_FOUND = ErrorText(
    "Not found",
    "Nothing is at this address, or it belongs to a VO that you cannot look into.",
    "Check the address, or start from a list.",
)
FAULT = ErrorText(
    "Internal error", "This is a fault of the server, not yours.", "Try again; if it stays, report it with the trace id."
)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, 400, BAD_REQUEST, None)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403; a guard says in the exception what is missing."""
    return _answer(request, 403, FORBIDDEN, exception)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404; a page says in the exception what there is not."""
    return _answer(request, 404, NOT_FOUND, exception)


def fault(request: HttpRequest) -> HttpResponse:
    """500, made without the database: that may be what is broken."""
    if wants_data(request):
        return problem_response(500, FAULT.title, FAULT.advice)
    return HttpResponse(render_to_string("error.html", FAULT._asdict()), status=500)


def _answer(request: HttpRequest, status: int, text: ErrorText, exception: Exception | None) -> HttpResponse:
    """The cause is the sentence of our own exception; Django's own 404 carries the paths that it tried, which helps nobody."""
    sentence = exception.args[0] if exception is not None and exception.args else ""
    text = text._replace(cause=sentence) if sentence and isinstance(sentence, str) else text
    if wants_data(request):
        return problem_response(status, text.title, text.cause)
    return render(request, "error.html", text._asdict(), status=status)
