"""What a visitor sets for themselves: signed in or out, and light, dark or as the system has it.

The appearance is kept in a cookie and rendered by the server, so that no page flashes.
"""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from broker_site.foundation.access.guards import open_access
from broker_site.foundation.access.logins import PasswordLogin

COOKIE = "appearance"
CHOICES = ("auto", "light", "dark")
YEAR_S = 365 * 86400

login = open_access(PasswordLogin.as_view(template_name="registration/login.html", redirect_authenticated_user=True))
logout = open_access(LogoutView.as_view(template_name="registration/logged_out.html"))


def appearance_of(request: HttpRequest | None) -> str:
    """The choice in the visitor's cookie; `auto` without a good one."""
    return _choice(request.COOKIES.get(COOKIE)) if request is not None else "auto"


@open_access
@require_POST
def appearance(request: HttpRequest) -> HttpResponse:
    """Keep the choice and go back to where it was made."""
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        back = "/"
    answer = HttpResponseRedirect(back)
    choice = _choice(request.POST.get("appearance"))
    answer.set_cookie(COOKIE, choice, max_age=YEAR_S, samesite="Lax", secure=request.is_secure())
    return answer


def _choice(text: str | None) -> str:
    return text if text in CHOICES else "auto"
