"""The short way for what pilots call, many times for each job: past the middleware that only people's requests need.

The views stand among the other addresses too (documentation, checks of routes), and are the same; what is left out here reads
sessions, cookies and forms, which no pilot has.
"""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, ResolverMatch, URLResolver
from django.urls.resolvers import RegexPattern

from broker_site.foundation.access.auditing import AuditMiddleware
from broker_site.foundation.access.authentication import shows_bearer
from broker_site.foundation.access.headers import SecurityHeadersMiddleware
from broker_site.foundation.access.problems import ProblemsMiddleware, answer_to
from brokerage.api.urls import pilot_urlpatterns

PREFIX = "/api/v1/"


class PilotVerbsMiddleware:
    """Answers POST requests to pilots' addresses that show a bearer token, and passes on all others.

    Stands after the trace id and the redirection to TLS.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.resolver = URLResolver(RegexPattern(rf"^{PREFIX}"), pilot_urlpatterns)
        self.answer = SecurityHeadersMiddleware(ProblemsMiddleware(AuditMiddleware(_view)))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path_info
        if request.method != "POST" or not path.startswith(PREFIX) or not shows_bearer(request):
            return self.get_response(request)
        try:
            request.get_host()
            request.resolver_match = self.resolver.resolve(path)
        except (DisallowedHost, Resolver404):
            return self.get_response(request)
        response = self.answer(request)
        if not response.streaming:
            response["Content-Length"] = str(len(response.content))  # type: ignore[attr-defined]
        return response


def _view(request: HttpRequest) -> HttpResponseBase:
    """The answer of the address's view, faults as problems."""
    view: ResolverMatch = request.resolver_match  # type: ignore[assignment]
    try:
        return view.func(request, *view.args, **view.kwargs)
    except Exception as fault:  # noqa: BLE001 - whatever a view throws, in place of Django's handler
        return answer_to(fault, request)
