"""The visitor's own tokens: which there are, and the form that makes another."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.models import Credential, Role
from broker_site.foundation.access.roles import ROLES
from broker_site.foundation.access.sessions import password_is_fresh
from broker_site.foundation.kernel import clock
from brokerage.api.tokens import tokens_of
from monitoring.views.page import page, show

OWN = "token:own"
MOST = 200
KNOWN = ("vo", "roles", "days", "note")


@page(OWN)
def tokens(request: HttpRequest) -> HttpResponseBase:
    """Good ones first; of those that are over the newest. The connection of the pages sees no roles and no tokens."""
    caller, now = authenticate(request), clock.now()
    held = list(Role.objects.filter(user=caller.user).values_list("vo", "role"))
    mine = tokens_of(caller).order_by("-id")
    rows = [(row, _state(row, now)) for row in mine[:MOST]]
    roles = {role for _, role in held}
    context = {
        "rows": sorted(rows, key=lambda row: row[1] != "good"),
        "vos": sorted({vo for vo, _ in held}),
        "roles": [role for role in ROLES if role in roles],
        "typed": {name: request.GET.get(name, "") for name in KNOWN},
        "marked": request.GET.getlist("roles"),
        "asks_password": not password_is_fresh(request.session),
    }
    return show(request, "tokens.html", "me", context, knows=KNOWN)


def _state(row: Credential, now: object) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if row.expires_at is not None and row.expires_at <= now else "good"  # type: ignore[operator]
