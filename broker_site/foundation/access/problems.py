"""How a refusal or a fault is told: RFC 9457 problem+json with the trace id, never with internals.

Not here: who is refused and why (`guards`, `rest`, the views), and the pages' error templates.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse, UnreadablePostError
from django.views.csrf import csrf_failure as csrf_page
from rest_framework import exceptions

from broker_site.foundation.access.trace import trace_id
from broker_site.foundation.kernel.verdict import Problem

CONTENT_TYPE = "application/problem+json"
_QUERY_CANCELLED = "57014"  # PostgreSQL's code for a statement that ran into statement_timeout
_RETRY_AFTER_S = "2"
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")

Fault = Problem | Mapping[str, str]
"""One fault of a body: field, rule, message; as the rules give it or already as the answer shows it."""

logger = logging.getLogger(__name__)


class Refused(Exception):
    """The request is not carried out. Usable anywhere below a view of the API; becomes a problem+json answer.

    `status` is the HTTP status, `title` the kind of refusal in few words, `detail` what to do about it, `errors` each fault
    with its field and rule, `headers` further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        title: str = "",
        detail: str = "",
        errors: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {title or _phrase(status)}: {detail}")
        self.status, self.title, self.detail = status, title, detail
        self.errors, self.headers = tuple(errors), dict(headers or {})

    def response(self) -> JsonResponse:
        """The answer that tells this refusal."""
        return problem_response(self.status, self.title, self.detail, self.errors, self.headers)

    def problem(self) -> dict[str, Any]:
        """The problem alone, for an answer that has several."""
        return _problem(self.status, self.title, self.detail, self.errors)


def not_authenticated(detail: str = "Send a bearer token or sign in.") -> Refused:
    """The 401 that tells how to authenticate."""
    return Refused(401, "Not authenticated", detail, headers={"WWW-Authenticate": 'Bearer realm="gridbroker"'})


def problem_response(
    status: int, title: str = "", detail: str = "", errors: Sequence[Fault] = (), headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """A problem+json answer; without a title the status speaks for itself."""
    body = _problem(status, title, detail, errors)
    response = JsonResponse(body, status=status, content_type=CONTENT_TYPE, headers=headers)
    response.problem_title = body["title"]  # type: ignore[attr-defined]  # for the audit, so that it need not parse the body
    return response


def _problem(status: int, title: str, detail: str, errors: Sequence[Fault]) -> dict[str, Any]:
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    body: dict[str, Any] = {
        "type": f"urn:gridbroker:problem:{slug}" if slug else "about:blank",
        "title": title or _phrase(status),
        "status": status,
        "detail": detail,
        "trace_id": trace_id(),
    }
    if errors:
        body["errors"] = [dict(e) if isinstance(e, Mapping) else asdict(e) for e in errors]
    return body


def answer_to(exc: BaseException, request: HttpRequest | None = None) -> JsonResponse:
    """The answer to any exception that came out of a view of the API; what nobody foresaw is logged and becomes a bare 500."""
    return _refusal_or_fault(exc, request).response()


def problem_of(exc: BaseException) -> dict[str, Any]:
    """The same as a problem alone, for an answer that has several."""
    return _refusal_or_fault(exc, None).problem()


def _refusal_or_fault(exc: BaseException, request: HttpRequest | None) -> Refused:
    refused = _refusal_of(exc, request)
    if refused is not None:
        return refused
    logger.error("unhandled exception, trace id %s", trace_id(), exc_info=exc)
    return Refused(500, "Internal error", "This is a fault of the server. Please report it with the trace id.")


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> HttpResponseBase:
    """REST framework's EXCEPTION_HANDLER."""
    from rest_framework.views import set_rollback  # that module imports ours while it is itself being imported

    set_rollback()
    return answer_to(exc, context.get("request"))


NO_ADDRESS = ("No such address", "Nothing has this address; /api/v1/schema/ describes those that there are.")


class ProblemsMiddleware:
    """Makes problem+json of every error under /api/, also of those that Django answers before or after our views."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Refuse an address that no database text can hold; else answer, errors as problems."""
        if "\x00" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            return problem_response(400, "Bad address", "The address holds a NUL character.")
        response = self.get_response(request)
        if not _is_api(request) or response.status_code < 400 or "json" in response.get("Content-Type", ""):
            return response
        kept = {name: value for name, value in response.items() if name not in ("Content-Type", "Content-Length")}
        title, detail = NO_ADDRESS if response.status_code == 404 else ("", "")
        answer = problem_response(response.status_code, title, detail, headers=kept)
        answer.cookies = response.cookies
        return answer

    def process_view(self, request: HttpRequest, *view: Any) -> None:
        """Refuse a form with a character that no database text can hold. The API takes none, and `jsonbody` reads strictly."""
        form = request.content_type in _FORMS and not _is_api(request)
        for name, values in request.POST.lists() if form else ():
            if "\x00" in name or any("\x00" in str(value) for value in values):
                raise BadRequest(f"The field {name[:60]!a} of the form holds a NUL character.")

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        """Answer for a plain view; pages outside the API keep Django's own way."""
        return answer_to(exception, request) if _is_api(request) else None


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """A session without the CSRF token: a problem under /api/, Django's page elsewhere. Who shows nothing at all gets 401."""
    if _is_api(request):
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return not_authenticated().response()
        return problem_response(403, "No CSRF token", f"A session needs the CSRF token to change anything. {reason}")
    return csrf_page(request, reason)


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")


def _refusal_of(exc: BaseException, request: HttpRequest | None) -> Refused | None:
    match exc:
        case Refused():
            return exc
        case Http404() | exceptions.NotFound():
            return Refused(404, "Not found", "There is nothing here, or nothing that you may see.")
        case PermissionDenied() | exceptions.PermissionDenied():
            return Refused(403, "Not permitted", _words(exc))
        case RequestDataTooBig():
            return Refused(413, "Body too large")
        case SuspiciousOperation() | UnreadablePostError():
            return Refused(400, "Bad request")
        case OperationalError() | InterfaceError():
            return _database_trouble(exc)
        case exceptions.APIException():
            return _rest(exc, request)
    return None


def _rest(exc: exceptions.APIException, request: HttpRequest | None) -> Refused:
    match exc:
        case exceptions.ValidationError():
            status = 400 if request is not None and request.method in ("GET", "HEAD") else 422
            return Refused(status, "Not valid", "Each fault is listed in errors.", tuple(_flat(exc.detail)))
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return not_authenticated()
        case exceptions.Throttled():
            seconds = max(1, round(getattr(exc, "wait", None) or 1))
            return Refused(429, "Too many requests", f"Try again in {seconds} s.", headers={"Retry-After": str(seconds)})
        case exceptions.MethodNotAllowed():
            return Refused(405, "", _words(exc))
        case exceptions.UnsupportedMediaType():
            return Refused(415, "Wrong content type", "Send application/json.")
    return Refused(exc.status_code, "", _words(exc))


def _database_trouble(exc: OperationalError | InterfaceError) -> Refused:
    logger.warning("database trouble, trace id %s", trace_id(), exc_info=exc)
    headers = {"Retry-After": _RETRY_AFTER_S}
    if getattr(exc.__cause__, "pgcode", None) == _QUERY_CANCELLED:
        return Refused(503, "Query took too long", "Narrow the filter or ask for less.", headers=headers)
    return Refused(503, "Database not available", "Try again.", headers=headers)


def _flat(detail: Any, path: str = "") -> Iterator[Problem]:
    """REST framework's nested details as one list; the path joins names and positions by dots."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _flat(inner, path if name == "non_field_errors" else f"{path}.{name}".lstrip("."))
    elif isinstance(detail, list):
        for position, inner in enumerate(detail):
            nested = isinstance(inner, Mapping | list)
            yield from _flat(inner, f"{path}.{position}".lstrip(".") if nested else path)
    else:
        yield Problem(path, str(getattr(detail, "code", "invalid")), str(detail))


def _words(exc: BaseException) -> str:
    return str(getattr(exc, "detail", "") or str(exc))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"Status {status}"
