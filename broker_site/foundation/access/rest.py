"""REST framework's side of access: authenticators, permission classes, the strict JSON parser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from broker_site.foundation.access.authentication import authenticate, shows_bearer
from broker_site.foundation.access.guards import check
from broker_site.foundation.access.jsonbody import BODY_LIMIT, decode, read_stream
from broker_site.foundation.access.permissions import OPEN, PERMISSIONS
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.routes import MARK

if TYPE_CHECKING:
    from rest_framework.views import APIView  # at run time that module imports this one first


def principal(request: Request) -> Principal:
    return authenticate(request._request)


class Bearer(BaseAuthentication):
    """Bearer tokens of every kind; `request.user` is the user of a user token, `request.auth` the principal."""

    def authenticate(self, request: Request) -> tuple[Any, Principal] | None:
        """None when there is no bearer token; Refused(401) for a bad one."""
        if not shows_bearer(request._request):
            return None
        sender = authenticate(request._request)
        return sender.user or AnonymousUser(), sender

    def authenticate_header(self, request: Request) -> str:
        """Makes REST framework answer 401 where nobody is authenticated."""
        return 'Bearer realm="gridbroker"'


class Session(SessionAuthentication):
    """The session of the pages; unsafe methods need the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, Principal] | None:
        """None without a session."""
        sender = authenticate(request._request)
        if sender.user is None:
            return None
        self.enforce_csrf(request)
        return sender.user, sender


class ByAction(BasePermission):
    """Reads `permissions` of the view: {action or lower-case method: permission}. What is not named there is refused."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Refused(401 or 403) with the reason; False, which is as much, when the view names nothing."""
        method = (request.method or "").lower()
        if method == "options":
            return view.metadata_class is None  # then REST framework answers 405
        if getattr(view, method, None) is None:
            return True  # no such method here: REST framework answers 405
        named: Mapping[str, str] = getattr(view, "permissions", {})
        permission = named.get(getattr(view, "action", None) or ("get" if method == "head" else method))
        return permission is not None and _granted(request, view, permission)


class Open(BasePermission):
    """A public view of REST framework."""

    access_permission = OPEN


def permission(name: str) -> type[BasePermission]:
    """A permission class that asks for one permission whatever the method: `permission_classes = [permission("task:read")]`."""
    PERMISSIONS[name]

    def has_permission(self: BasePermission, request: Request, view: APIView) -> bool:
        return _granted(request, view, name)

    return type(f"Requires_{name.replace(':', '_')}", (BasePermission,), {MARK: name, "has_permission": has_permission})


class StrictJSONParser(BaseParser):
    """JSON within the limits of `jsonbody`; a view may set `body_limit` in bytes."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """The value; Refused(400 or 413)."""
        context = parser_context or {}
        limit = getattr(context.get("view"), "body_limit", BODY_LIMIT)
        request = context.get("request")
        return decode(read_stream(stream, request.META.get("CONTENT_LENGTH") if request is not None else None, limit))


def _granted(request: Request, view: APIView, name: str) -> bool:
    check(principal(request), name, view.kwargs)
    return True
