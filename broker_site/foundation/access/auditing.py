"""The audit: one row for each privileged act, done or refused.

A view writes its row with `audit` in the transaction of the act; the middleware writes one for calls that left none, which is how
refusals and faults get theirs. Callers without a credential that come too often share rows (`strangers`). Which calls are
privileged stands in `permissions` (note `audited`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.db import Error as DatabaseProblem
from django.http import HttpRequest, HttpResponseBase

from broker_site.foundation.access.authentication import authenticate, shows_bearer, shows_known_session
from broker_site.foundation.access.models import Audit
from broker_site.foundation.access.permissions import PERMISSIONS
from broker_site.foundation.access.principal import ANONYMOUS, Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.routes import permission_of
from broker_site.foundation.access.strangers import STRANGERS, WINDOW_S, client_address
from broker_site.foundation.access.trace import trace_id

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Call:
    noted: bool = False


_call: ContextVar[_Call | None] = ContextVar("audited_call", default=None)


def audit(
    act: str,
    principal: Principal,
    target: str,
    outcome: str = Audit.Outcome.DONE,
    *,
    vo: str = "",
    reason: str = "",
    before: Any = None,
    after: Any = None,
    status: int | None = None,
) -> None:
    """Add one row, in the caller's transaction if there is one.

    `act` is a verb with its kind of object ("task.kill"), `target` the object ("task 7"), `outcome` one of done, refused, failed;
    `before` and `after` are JSON values of what changed, never secrets.
    """
    Audit.objects.create(
        who=principal.name[:200],
        kind=principal.kind,
        prefix=principal.prefix,
        vo=vo or principal.vo,
        act=act,
        object=target[:300],
        outcome=outcome,
        status=status,
        reason=reason[:500],
        before=before,
        after=after,
        trace_id=trace_id(),
    )
    call = _call.get()
    if call is not None:
        call.noted = True


class AuditMiddleware:
    """Sees to it that each unsafe call of an audited route leaves a row. Stands after authentication."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method in SAFE_METHODS:
            return self.get_response(request)
        if request.path_info.startswith("/api/") and not (shows_bearer(request) or shows_known_session(request)):
            try:
                STRANGERS.refuse_spent(client_address(request))
            except Refused as refused:
                STRANGERS.has_row(client_address(request))  # counted, and told with the sum
                return refused.response()
        _add_sums()
        call = _Call()
        token = _call.set(call)
        try:
            response = self.get_response(request)
            if permission := _audited_permission(request):
                _see_to_row(request, response, permission, call.noted)
            return response
        finally:
            _call.reset(token)


def _audited_permission(request: HttpRequest) -> str:
    match = request.resolver_match
    permission = permission_of(match.func, request.method or "") if match is not None else ""
    return permission if permission in PERMISSIONS and PERMISSIONS[permission].audited else ""


def _see_to_row(request: HttpRequest, response: HttpResponseBase, permission: str, noted: bool) -> None:
    """The answer stands, also where the database is gone: the log then has the trace id."""
    try:
        # A row noted before a refusal may have been rolled back with the rest of the transaction: look.
        if not (noted and (response.status_code < 400 or _row_exists())):
            _add_row(request, response, permission)
    except DatabaseProblem as exc:
        logger.error("no audit row for %s %s, trace id %s: %s", request.method, permission, trace_id(), exc)


def _row_exists() -> bool:
    return bool(trace_id()) and Audit.objects.filter(trace_id=trace_id()).exists()


def _add_row(request: HttpRequest, response: HttpResponseBase, permission: str) -> None:
    status = response.status_code
    who, after = _principal(request), None
    if who is ANONYMOUS:
        address = client_address(request)
        if status == 401 and not shows_bearer(request):
            STRANGERS.failed(address)
        if not STRANGERS.has_row(address):
            return
        after = {"address": address}
    outcome = Audit.Outcome.DONE if status < 400 else Audit.Outcome.REFUSED if status < 500 else Audit.Outcome.FAILED
    reason = getattr(response, "problem_title", "")
    audit(permission, who, f"{request.method} {request.path}", outcome, reason=reason, status=status, after=after)


def _add_sums() -> None:
    """A row for each address whose further failures of the last minute had none."""
    for address, n in STRANGERS.sums():
        words = f"{n} further calls without a good credential from this address in {WINDOW_S:.0f} s"
        try:
            audit("stranger", ANONYMOUS, f"address {address}", Audit.Outcome.REFUSED, reason=words, after={"calls": n})
        except DatabaseProblem as exc:
            logger.error("no audit row for address %s, %s: %s", address, words, exc)


def _principal(request: HttpRequest) -> Principal:
    try:
        return authenticate(request)
    except Refused:
        return ANONYMOUS
