"""What every page does alike: guard, read-only methods, page or fragment, and an answer when reading takes too long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.permissions import VoScope, visible_vos
from broker_site.foundation.access.problems import problem_response
from broker_site.foundation.kernel import clock
from monitoring.queries.database import ran_too_long
from monitoring.tables.selection import not_known, unknown

PANEL = "panel"
"""Name of the part of each template that is fetched again while the page is open."""
TOO_LONG = "This took longer than a page may. Narrow the filter, or ask for fewer rows."

View = Callable[..., HttpResponseBase]


def page(permission: str, knows: Sequence[str] | None = None) -> Callable[[View], View]:
    """Guard a page by a permission; it may be read only, and a statement that runs too long gives a page that says so.

    `knows`: its parameters, where its JSON and CSV refuse all others; a view without them sees to that by itself.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def timed(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if knows is not None and wants_data(request) and (wrong := not_known(request.GET, knows)):
                return problem_response(400, "Not valid", "Each fault is listed in errors.", wrong)
            try:
                return view(request, *args, **kwargs)
            except OperationalError as error:
                if not ran_too_long(error):
                    raise
                if wants_data(request):
                    return problem_response(503, "Too much to read", TOO_LONG)
                context = {"title": "Too much to read", "cause": TOO_LONG, "advice": ""}
                return render(request, "error.html", context, status=503)

        return page_requires(permission)(require_safe(timed))

    return decorate


def scope_of(request: HttpRequest, permission: str = "task:read") -> VoScope:
    """The VOs that the visitor may look into."""
    return visible_vos(authenticate(request), permission)


def show(
    request: HttpRequest, template: str, section: str, context: Mapping[str, Any], status: int = 200, knows: Sequence[str] = ()
) -> HttpResponse:
    """The page, or only its panel when the open page fetches that again; with a warning for each parameter it does not know."""
    part = f"#{PANEL}" if request.headers.get("HX-Request") == "true" else ""
    common = {
        "section": section,
        "as_of": clock.now(),
        "live": request.GET.get("live") != "off",
        "path": request.get_full_path(),
        "looks_in": scope_of(request, "share:look"),
        "warnings": unknown(request.GET, (*knows, "live")),
    }
    answer = render(request, f"monitoring/{template}{part}", {**common, **context}, status=status)
    patch_vary_headers(answer, ["HX-Request", "Accept"])
    answer.headers.setdefault("Cache-Control", "private, no-store")
    return answer


def wants_data(request: HttpRequest) -> bool:
    return request.path.endswith((".json", ".csv"))
