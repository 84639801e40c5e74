"""Security headers of every answer. Django's own middleware adds HSTS where TLS is on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.http import HttpRequest, HttpResponseBase

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
"""No inline script or style anywhere; Django's admin and our pages load both from files. `data:` is for images in style
sheets.
"""

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "private, no-store",
}
"""Nothing is to be kept by a browser or a proxy: nearly all of it is behind a login. Static files are answered before this."""

R = TypeVar("R", bound=HttpResponseBase)


def with_headers(response: R) -> R:
    """The answer with the headers that it does not have yet."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


class SecurityHeadersMiddleware:
    """Sets the headers on what Django answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return with_headers(self.get_response(request))
