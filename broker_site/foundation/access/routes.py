"""Every route of the URL conf with the permission that each of its methods asks for.

Here too: the system check that no route is without a permission. Guards leave their mark on a view: `MARK`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.core.checks import Error, Tags, register
from django.urls import URLPattern, URLResolver, get_resolver

from broker_site.foundation.access.permissions import ADMIN, OPEN, PERMISSIONS

MARK = "access_permission"
"""Attribute of a guarded view or REST permission class: the name of its permission, or OPEN."""
MARKS = "access_permissions"
"""Attribute of a view that several answer: method -> permission."""
JOB_ARGUMENT = "job_id"
"""The name that a route guarded by a permission noted `own` gives to the job in its address."""
ANY = "*"
"""Stands for the method where a view asks the same for each."""

_HTTP = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `patterns` are the parts of its address, outermost first; `methods` maps a method (or ANY) to a permission,
    "" = none.
    """

    patterns: tuple[Any, ...]
    callback: Callable[..., Any]
    methods: Mapping[str, str]

    @property
    def address(self) -> str:
        """The address as the URL conf writes it."""
        return "/" + "".join(str(p) for p in self.patterns)


def routes(urlconf: str | None = None) -> Iterator[Route]:
    """All routes of this URL conf, or of the one in the settings."""
    yield from _walk(get_resolver(urlconf).url_patterns, ())


def permission_of(callback: Callable[..., Any], method: str) -> str:
    """What this method of a route asks for: a permission, OPEN, ADMIN, or "" where nothing is said."""
    permissions = permissions_of(callback)
    return permissions.get(ANY, "") or permissions.get("GET" if method == "HEAD" else method, "")


def permissions_of(callback: Callable[..., Any]) -> Mapping[str, str]:
    """Method (or ANY) -> permission of a resolved view."""
    marks: Mapping[str, str] | None = getattr(callback, MARKS, None)
    if marks is not None:
        return marks
    mark = getattr(callback, MARK, None)
    if mark is not None:
        return {ANY: mark}
    if (
        hasattr(callback, "model_admin")
        or isinstance(getattr(callback, "admin_site", None), AdminSite)
        or _inside_admin(callback)
    ):
        return {ANY: ADMIN}
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, AdminSite):  # the admin's login page, the only view that it leaves unguarded
        return {ANY: OPEN}
    view_class = getattr(callback, "cls", None)
    return _of_rest(callback, view_class) if view_class is not None else {ANY: ""}


def _inside_admin(callback: Any, depth: int = 4) -> bool:
    """Whether `AdminSite.admin_view` guards this callback: it leaves no mark of its own, so look for it among the wrapped
    functions.
    """
    code = getattr(callback, "__code__", None)
    if code is None:
        return False
    if code.co_qualname == "AdminSite.admin_view.<locals>.inner":
        return True
    cells = [cell.cell_contents for cell in callback.__closure__ or ()] if depth else []
    return any(_inside_admin(inner, depth - 1) for inner in cells)


def _of_rest(callback: Any, view_class: Any) -> dict[str, str]:
    options: Mapping[str, Any] = getattr(callback, "initkwargs", {})
    for permission_class in options.get("permission_classes", view_class.permission_classes):
        if mark := getattr(permission_class, MARK, ""):
            return {ANY: mark}
    named: Mapping[str, str] = options.get("permissions", getattr(view_class, "permissions", {}))
    actions: Mapping[str, str] | None = getattr(callback, "actions", None)
    if actions is not None:
        return {method.upper(): named.get(action, "") for method, action in actions.items()}
    return {method: named.get(method.lower(), "") for method in _HTTP if hasattr(view_class, method.lower())}


def _walk(patterns: list[Any], before: tuple[Any, ...]) -> Iterator[Route]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, (*before, pattern.pattern))
        elif isinstance(pattern, URLPattern):
            yield Route((*before, pattern.pattern), pattern.callback, permissions_of(pattern.callback))


@register(Tags.security)
def check_routes(app_configs: Any = None, **kwargs: Any) -> list[Error]:
    return route_errors(settings.ROOT_URLCONF)


def route_errors(urlconf: str) -> list[Error]:
    """access.E001: a method without permission; E002: an unknown one; E003: a job's own route that does not name the job."""
    return [
        error for route in routes(urlconf) for method, name in route.methods.items() for error in _errors(route, method, name)
    ]


def _errors(route: Route, method: str, name: str) -> list[Error]:
    place = f"{method} {route.address}"
    if name in (OPEN, ADMIN):
        return []
    if not name:
        hint = "Guard the view with requires, page_requires, open_access, or name its actions in `permissions`."
        return [Error(f"{place} has no permission.", hint=hint, id="access.E001")]
    if name not in PERMISSIONS:
        return [Error(f"{place} asks for {name!r}, which is not in the table of permissions.", id="access.E002")]
    if PERMISSIONS[name].own and f":{JOB_ARGUMENT}>" not in route.address:
        return [Error(f"{place} asks for {name} but does not name the job <int:{JOB_ARGUMENT}>.", id="access.E003")]
    return []
