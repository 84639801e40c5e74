"""How the OpenAPI document tells of our authenticators."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class BearerScheme(OpenApiAuthenticationExtension):
    """Bearer tokens."""

    target_class = "broker_site.foundation.access.rest.Bearer"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """The scheme of RFC 6750."""
        return {"type": "http", "scheme": "bearer", "description": "A user, enrolment, pilot or job token."}


class SessionScheme(OpenApiAuthenticationExtension):
    """The session of the pages."""

    target_class = "broker_site.foundation.access.rest.Session"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """The cookie."""
        from django.conf import settings

        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
