"""What can go wrong, each with the exit code that the command ends with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OK, TASK_FAILED, USAGE, NOT_FOUND, NOT_ALLOWED, INVALID, SERVER, TIMEOUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 7, 130

_BY_STATUS = {401: NOT_ALLOWED, 403: NOT_ALLOWED, 404: NOT_FOUND, 408: SERVER, 429: SERVER}


class BrokerError(Exception):
    """Something did not work. `title`: what, in few words; `detail`: more of it; `hint`: what to do; `exit_code` of `broker`."""

    exit_code = SERVER

    def __init__(self, title: str, detail: str = "", hint: str = "") -> None:
        super().__init__(f"{title}: {detail}" if detail else title)
        self.title, self.detail, self.hint = title, detail, hint


class Unusable(BrokerError):
    """What was asked for cannot be asked, so nothing was sent."""

    exit_code = USAGE


class Unreachable(BrokerError):
    """The server does not answer, or what answers is no GridBroker."""


class TimedOut(BrokerError):
    """A task was waited for and has not ended in time. It goes on."""

    exit_code = TIMEOUT


@dataclass(frozen=True)
class Fault:
    """One fault of what was sent: the field, the rule that it breaks, and a sentence."""

    field: str
    rule: str
    message: str


class Refused(BrokerError):
    """The server says no. `status` of HTTP, `faults` by field, `trace_id` by which the server's log knows the request."""

    def __init__(self, status: int, problem: Mapping[str, Any], hint: str = "") -> None:
        super().__init__(str(problem.get("title") or f"HTTP status {status}"), str(problem.get("detail") or ""), hint)
        self.status = status
        self.trace_id = str(problem.get("trace_id") or "")
        given = problem.get("errors")
        self.faults = tuple(
            Fault(*(str(each.get(name) or "") for name in ("field", "rule", "message")))
            for each in (given if isinstance(given, list) else ())
            if isinstance(each, dict)
        )
        self.exit_code = _BY_STATUS.get(status, SERVER if status >= 500 else INVALID)
