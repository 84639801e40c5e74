"""Signing in with a password, by the pages and by the admin: limited, and each try in the audit and in the log."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.login_limits import Limit, give_back, limits_of, remember_device, reserve
from broker_site.foundation.access.models import Audit, User
from broker_site.foundation.access.principal import ANONYMOUS, Principal
from broker_site.foundation.access.strangers import STRANGERS, client_address

logger = logging.getLogger(__name__)

UNKNOWN = "unknown user"
"""Stands for a name that is no user's: people type passwords there by mistake."""


class PasswordLogin(LoginView):
    """Django's form of name and password."""

    _reserved: tuple[Limit, ...] = ()

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """Refuse what comes too often before a password is looked at: to check one takes long on purpose."""
        username = request.POST.get("username", "")
        if username and request.POST.get("password"):
            limits = limits_of(request, username)
            if wait := reserve(limits):
                note_failure(request, "login", username, "too many tries", status=429)
                return too_many(request, wait)
            self._reserved = limits
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign in, and know the browser from now on."""
        give_back(self._reserved)
        answer = super().form_valid(form)
        user = form.get_user()
        note_success(self.request, "login", user)
        remember_device(self.request, answer, user.get_username())
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        if self._reserved:
            note_failure(self.request, "login", self.request.POST.get("username", ""), "not accepted", status=200)
        return super().form_invalid(form)


def too_many(request: HttpRequest, wait: int) -> HttpResponse:
    """The page that says when to come back."""
    text = {
        "title": "Too many tries",
        "cause": "Too many passwords were tried for this account, or from your address. Nothing was checked this time.",
        "advice": f"Try again in {wait} s. A browser in which you have signed in before is not held up by tries of others.",
    }
    answer = render(request, "error.html", text, status=429)
    answer.headers["Retry-After"] = str(wait)
    return answer


def note_success(request: HttpRequest, act: str, user: Any) -> None:
    """A row and a line for a good password."""
    address, who = client_address(request), Principal("user", user.get_username(), user=user)
    audit(act, who, f"user {who.name}", after={"address": address})
    logger.info("%s of %s from %s", act, who.name, address)


def note_failure(request: HttpRequest, act: str, username: str, reason: str, status: int) -> None:
    """A row and a line for a bad one; of those that were not even looked at, many from one address share a row (`strangers`)."""
    address = client_address(request)
    if status == 429 and not STRANGERS.has_row(address):
        return
    name = f"user {username}" if username and User.objects.filter(username=username).exists() else UNKNOWN
    audit(act, ANONYMOUS, name, Audit.Outcome.REFUSED, reason=reason, status=status, after={"address": address})
    logger.warning("%s of %s from %s refused: %s", act, name, address, reason)
