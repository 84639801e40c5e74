"""The trace id: one random text per request, in its answer, its problem body, its audit row and its log records."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponseBase

HEADER = "X-Trace-Id"

_current: ContextVar[str] = ContextVar("trace_id", default="")


def trace_id() -> str:
    """The trace id of the request being answered; empty outside one."""
    return _current.get()


@contextmanager
def traced() -> Iterator[str]:
    """A new trace id for what happens inside: what a client sends is not taken over, so that ids cannot be forged or reused."""
    token = _current.set(secrets.token_hex(8))
    try:
        yield trace_id()
    finally:
        _current.reset(token)


class TraceMiddleware:
    """Gives each request a trace id of our own making and tells it in the answer. Stands first."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer with the header."""
        with traced() as own:
            response = self.get_response(request)
            response[HEADER] = own
            return response


class TraceFilter(logging.Filter):
    """Gives each log record the attribute `trace_id`, `-` outside a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.trace_id = trace_id() or "-"
        return True
