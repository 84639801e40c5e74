"""The trace id: one random text per request, in its answer, its problem body, its audit row and its log records."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from itertools import count

from django.http import HttpRequest, HttpResponseBase

HEADER = "X-Trace-Id"

_number = count()
_current: ContextVar[str] = ContextVar("trace_id", default="")


def trace_id() -> str:
    """The trace id of the request being answered; empty outside one."""
    return _current.get()


def _new_id() -> str:
    """64 bits that nobody can foretell, without asking the system for each, which lets other threads run."""
    return sha256(b"%s %d" % (_secret(os.getpid()), next(_number))).hexdigest()[:16]


@cache
def _secret(process: int) -> bytes:
    return secrets.token_bytes(32)


@contextmanager
def traced(own: str = "") -> Iterator[str]:
    """A trace id for what happens inside: a new one, or that of a request on which work goes on.

    What a client sends is not taken over, so that ids cannot be forged or reused.
    """
    token = _current.set(own or _new_id())
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
