"""Guards of plain Django views: `requires` for the API, `page_requires` for pages, `open_access` for public routes.

A guard leaves its mark on the view, and the system check (`routes`) refuses a route without one. REST framework's guards: `rest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import resolve_url

from broker_site.foundation.access.authentication import authenticate, shows_bearer
from broker_site.foundation.access.permissions import OPEN, PERMISSIONS, may
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused, not_authenticated
from broker_site.foundation.access.roles import ROLES
from broker_site.foundation.access.routes import JOB_ARGUMENT, MARK

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def requires(permission: str) -> Callable[[View], View]:
    """Guard an API view: `@requires("pilot:match")`; refusals are problem+json. The view finds `request.principal`.

    Also turns a `Refused` from the view into its answer.
    """
    PERMISSIONS[permission]

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                check(authenticate(request), permission, kwargs)
                return view(request, *args, **kwargs)
            except Refused as refused:
                return refused.response()

        return _marked(guarded, permission)  # type: ignore[return-value]

    return decorate


def page_requires(permission: str) -> Callable[[View], View]:
    """Guard a page: a stranger is sent to the login, others without the right get 403. Bearers and `.json`/`.csv` get
    problem+json.
    """
    PERMISSIONS[permission]

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                principal = authenticate(request)
                check(principal, permission, kwargs)
            except Refused as refused:
                if shows_bearer(request) or request.path.endswith((".json", ".csv")):
                    return refused.response()
                if refused.status == 401:
                    return _to_login(request)
                raise PermissionDenied(refused.detail) from None
            return view(request, *args, **kwargs)

        return _marked(guarded, permission)  # type: ignore[return-value]

    return decorate


def open_access(view: View) -> View:
    """Mark a public view: login, health. Works on functions and on the result of `as_view()`."""

    @wraps(view)
    def public(*args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(*args, **kwargs)

    return _marked(public, OPEN)  # type: ignore[return-value]


def _given_by(permission: str) -> str:
    """The roles by which a user has it, or that superusers alone have it; empty where each role gives it."""
    roles = sorted({"submitter" if role == "owner" else role for role in PERMISSIONS[permission].roles})
    if not roles and "user" in PERMISSIONS[permission].kinds:
        return ": no role gives it, nor a right of Django's admin; superusers have it"
    if not roles or len(roles) == len(ROLES):
        return ""
    return f": the role {roles[0]} gives it" if len(roles) == 1 else f": one of the roles {', '.join(roles)} gives it"


def check(principal: Principal, permission: str, arguments: Mapping[str, Any]) -> None:
    """Refused(401) for a stranger, Refused(403) for one without the permission or for another job's token.

    `arguments` are those of the address.
    """
    if principal.kind == "anonymous":
        raise not_authenticated()
    if not may(principal, permission):
        said = f"This needs the right {permission}, which {principal.name} does not have"
        raise Refused(403, "Not permitted", f"{said}{_given_by(permission)}.")
    if PERMISSIONS[permission].own and (principal.job is None or str(arguments.get(JOB_ARGUMENT)) != str(principal.job.job_id)):
        raise Refused(403, "Another job", "The token was given for another job.")


def _marked(view: Callable[..., HttpResponseBase], permission: str) -> Callable[..., HttpResponseBase]:
    view.__dict__[MARK] = permission
    return view


def _to_login(request: HttpRequest) -> HttpResponseBase:
    if request.headers.get("HX-Request") != "true":
        return redirect_to_login(request.get_full_path())
    # A fragment of a page must not be replaced by a login form: the whole page goes there.
    return HttpResponse(status=401, headers={"HX-Redirect": resolve_url(settings.LOGIN_URL)})
