"""Sessions end: half an hour after they were last used, and eight hours after the password. They know when it was typed last.

`SessionStore` is Django's in the database; whatever has ended is removed when it is next read. A page that fetches itself anew
while nobody looks does not count as use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.http import HttpRequest, HttpResponseBase

IDLE_S, LONGEST_S = 1800.0, 8 * 3600.0
NOTE_S = 60.0
"""A session that is in use is written as often."""
PASSWORD_S = 900.0
"""So long after the password was typed may roles, shares and configuration be changed without typing it again."""

BEGUN, USED, PASSWORD = "begun", "used", "password"


class SessionStore(DatabaseStore):
    """Those of signed-in users that have ended are empty and gone."""

    def load(self) -> dict[str, Any]:
        """What the session holds."""
        data: dict[str, Any] = super().load()
        if SESSION_KEY in data and _ended(data):
            self.delete(self.session_key)
            self._session_key = None
            return {}
        return data


def _ended(data: Mapping[str, Any]) -> bool:
    now = time.time()
    return now - data.get(USED, 0) >= IDLE_S or now - data.get(BEGUN, 0) >= LONGEST_S


def begin(session: SessionBase) -> None:
    """The password was right: the session begins, or begins anew."""
    session[BEGUN] = session[USED] = session[PASSWORD] = time.time()


def password_typed(session: SessionBase) -> None:
    """The password was right once more; the session ends no later for it."""
    session[PASSWORD] = time.time()


def password_is_fresh(session: SessionBase) -> bool:
    return time.time() - session.get(PASSWORD, 0) < PASSWORD_S


class SessionUseMiddleware:
    """Notes that a session was used. Stands behind Django's, which saves it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        session = request.session
        by_itself = request.method == "GET" and request.headers.get("HX-Request") == "true"
        if not session.accessed or by_itself or response.status_code >= 500:  # what could not be read is not read again
            return response
        if SESSION_KEY in session and time.time() - session.get(USED, 0) >= NOTE_S:
            session[USED] = time.time()
        return response
