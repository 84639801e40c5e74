"""System check: no route without a permission, no permission without a line in the table."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, register

from broker_site.foundation.access.guards import JOB_ARGUMENT
from broker_site.foundation.access.permissions import ADMIN, OPEN, PERMISSIONS
from broker_site.foundation.access.routes import Route, routes


@register(Tags.security)
def check_routes(app_configs: Any = None, **kwargs: Any) -> list[Error]:
    """Errors of the URL conf in the settings."""
    return route_errors(settings.ROOT_URLCONF)


def route_errors(urlconf: str) -> list[Error]:
    """access.E001: a method without permission; E002: an unknown permission; E003: a job's own route that does not name the
    job.
    """
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
