"""The short way for what pilots and child brokers call, many times a second: past Django's handler and people's middleware.

The views stand among the other addresses too (documentation, checks of routes, other servers), and answer the same there; what is
left out here reads sessions, cookies and forms, which neither has, or is done once for requests that are worked on together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.urls import Resolver404, ResolverMatch, URLResolver
from django.urls.resolvers import RegexPattern

from broker_site.foundation.access.auditing import AuditMiddleware
from broker_site.foundation.access.authentication import shows_bearer
from broker_site.foundation.access.headers import with_headers
from broker_site.foundation.access.problems import ProblemsMiddleware, answer_to
from broker_site.foundation.access.trace import HEADER, traced
from brokerage.api.joint_verbs import TOGETHER, Pending, Wish, carry_out
from brokerage.api.urls import child_urlpatterns, pilot_urlpatterns

PREFIX = "/api/v1/"


@dataclass(slots=True)
class Unanswered:
    """A request whose answer is known once its wish is carried out."""

    request: HttpRequest
    trace_id: str
    wish: Wish[Any, Any, HttpResponse]


class PilotVerbs:
    """Answers POST requests to addresses of pilots and child brokers that show a bearer token."""

    def __init__(self) -> None:
        patterns = [*pilot_urlpatterns, *child_urlpatterns]
        self.resolver = URLResolver(RegexPattern(rf"^{PREFIX}"), patterns)
        whole = [f"{PREFIX}{each.pattern}" for each in patterns if not each.pattern.converters]
        self.known = {path: self.resolver.resolve(path) for path in whole}
        """Of addresses without a number: to look for one among all takes as long as a few fields of a message."""
        self.security = SecurityMiddleware(lambda request: HttpResponse())
        self.view = ProblemsMiddleware(AuditMiddleware(_view))

    def begin(self, environ: dict[str, Any]) -> HttpResponse | Unanswered | None:
        """The answer, or what it waits for; None: this is no such request, Django's handler is to be asked."""
        if environ["REQUEST_METHOD"] != "POST" or not environ["PATH_INFO"].startswith(PREFIX):
            return None
        request = WSGIRequest({**environ, TOGETHER: True})
        try:
            request.get_host()
            request.resolver_match = self.known.get(request.path_info) or self.resolver.resolve(request.path_info)
        except (DisallowedHost, Resolver404):
            return None
        if not shows_bearer(request) or self.security.process_request(request) is not None:
            return None
        with traced() as trace_id:
            try:
                return self._whole(request, self.view(request), trace_id)
            except Pending as pending:
                return Unanswered(request, trace_id, pending.wish)

    def end(self, begun: Sequence[Unanswered]) -> Iterator[tuple[int, HttpResponse]]:
        """Carry out what these wish: the place of each with its answer, as soon as it is known."""
        for place, told in carry_out([each.wish for each in begun]):
            request, trace_id = begun[place].request, begun[place].trace_id
            with traced(trace_id):
                response = answer_to(told, request) if isinstance(told, Exception) else told
            yield place, self._whole(request, response, trace_id)

    def _whole(self, request: HttpRequest, response: HttpResponseBase, trace_id: str) -> HttpResponse:
        """The answer with the headers that every answer has."""
        if not isinstance(response, HttpResponse):
            raise TypeError("what pilots and child brokers call has no long answers")
        self.security.process_response(request, with_headers(response))
        response[HEADER] = trace_id
        response["Content-Length"] = str(len(response.content))
        return response


def _view(request: HttpRequest) -> HttpResponseBase:
    """The answer of the address's view, faults as problems."""
    view: ResolverMatch = request.resolver_match  # type: ignore[assignment]
    try:
        return view.func(request, *view.args, **view.kwargs)
    except Pending:
        raise
    except Exception as fault:  # noqa: BLE001 - whatever a view throws, in place of Django's handler
        return answer_to(fault, request)
