"""The password once more, before what changes rights or configuration: for the admin and for pages with the same power."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponseBase

from broker_site.foundation.access.login_limits import give_back, limits_of, reserve
from broker_site.foundation.access.logins import note_failure, note_success, too_many
from broker_site.foundation.access.sessions import password_is_fresh, password_typed

FIELD, ACT = "password_again", "password"
"""The field of a form that has the password, and how the audit calls the act."""


class PasswordAgain(NamedTuple):
    """Whether the session may go on (`fresh`); else what was wrong with what was typed, or the answer to too many tries."""

    fresh: bool
    fault: str = ""
    refused: HttpResponseBase | None = None


def password_again(request: HttpRequest) -> PasswordAgain:
    """Look whether the password was typed lately, or in this form; each try counts for the limits of logins and is audited."""
    if password_is_fresh(request.session):
        return PasswordAgain(fresh=True)
    if FIELD not in request.POST:
        return PasswordAgain(fresh=False)
    user: Any = request.user
    limits = limits_of(request, user.get_username())
    if wait := reserve(limits):
        note_failure(request, ACT, user.get_username(), "too many tries", status=429)
        return PasswordAgain(fresh=False, refused=too_many(request, wait))
    if user.check_password(request.POST[FIELD]):
        give_back(limits)
        note_success(request, ACT, user)
        password_typed(request.session)
        return PasswordAgain(fresh=True)
    note_failure(request, ACT, user.get_username(), "not accepted", status=403)
    return PasswordAgain(fresh=False, fault="That is not your password.")
