"""The trace id: one random text per request, in its answer, its problem body, its audit row and its log records."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponseBase

HEADER = "X-Trace-Id"

_current: ContextVar[str] = ContextVar("trace_id", default="")


def trace_id() -> str:
    """The trace id of the request being answered; empty outside one."""
    return _current.get()


class TraceMiddleware:
    """Gives each request a trace id of our own making and tells it in the answer. Stands first."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer with the header; what a client sends in it is not taken over, so that ids cannot be forged or reused."""
        token = _current.set(secrets.token_hex(8))
        try:
            response = self.get_response(request)
            response[HEADER] = trace_id()
            return response
        finally:
            _current.reset(token)


class TraceFilter(logging.Filter):
    """Gives each log record the attribute `trace_id`, `-` outside a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.trace_id = trace_id() or "-"
        return True
