"""Light, dark, or as the system has it: kept in a cookie and rendered by the server, so that no page flashes."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from broker_site.foundation.access.guards import open_access

COOKIE = "appearance"
CHOICES = ("auto", "light", "dark")
YEAR_S = 365 * 86400


def chosen(cookie: str | None) -> str:
    """The choice that a cookie says; `auto` without a good one."""
    return cookie if cookie in CHOICES else "auto"


@open_access
@require_POST
def appearance(request: HttpRequest) -> HttpResponse:
    """Keep the choice and go back to where it was made."""
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        back = "/"
    answer = HttpResponseRedirect(back)
    answer.set_cookie(COOKIE, chosen(request.POST.get("appearance")), max_age=YEAR_S, samesite="Lax", secure=request.is_secure())
    return answer
