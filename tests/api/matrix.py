"""The matrix of authorisation: every route of the site, asked by a caller of every kind.

Here: the callers, the addresses that are tried, and what each caller must be answered. `ALLOWED` is written by hand and on
purpose not derived from the table of permissions: a change of rights has to be made in both places. Used by `test_matrix.py`,
and by tests of single routes that need callers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID, uuid4

from django.test import Client
from django.urls import converters
from django.urls.resolvers import RegexPattern, RoutePattern
from django.utils.regex_helper import normalize

from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.access.credentials import (
    ensure_user,
    issue_enrolment,
    issue_pilot_token,
    issue_user_token,
    revoke,
)
from broker_site.foundation.access.models import User
from broker_site.foundation.access.permissions import ADMIN, OPEN, PERMISSIONS
from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.access.roles import ROLES
from broker_site.foundation.access.routes import ANY, Route
from broker_site.foundation.access.tokens import mint_job_token
from workqueues.ledger.child_brokers import add_child

VO = "atlas"
QUEUE = "MATRIX"
JOB = 2_000_000_007
"""The number in every tried address, and the job of the job token: high, so that no row of a test happens to have it."""
PILOT = UUID("00000000-0000-4000-8000-000000000007")

_READERS = frozenset({"submitter", "production", "operator", "share-editor", "auditor", "session", "superuser"})
ALLOWED: dict[str, frozenset[str]] = {
    "task:submit": frozenset({"submitter", "session"}),
    "task:produce": frozenset({"production"}),
    "task:command": frozenset({"submitter", "session", "operator", "superuser"}),
    "task:look": frozenset({"submitter", "session", "operator", "superuser"}),
    "task:pause": frozenset({"submitter", "session", "operator", "superuser"}),
    "task:avalanche": frozenset({"production", "operator", "superuser"}),
    "task:priority": frozenset({"production", "operator", "superuser"}),
    "task:share": frozenset({"production", "operator", "superuser"}),
    "task:release": frozenset({"production", "operator", "superuser"}),
    "task:split": frozenset({"production", "operator", "superuser"}),
    "task:attributes": frozenset({"production", "operator", "superuser"}),
    "task:reassign": frozenset({"submitter", "session", "operator", "superuser"}),
    "task:input": frozenset({"submitter", "session", "production", "operator", "superuser"}),
    "task:tries": frozenset({"submitter", "session", "production", "operator", "superuser"}),
    "job:kill": frozenset({"submitter", "session", "operator", "superuser"}),
    "job:retry": frozenset({"submitter", "session", "operator", "superuser"}),
    "task:transcend": frozenset({"production", "operator", "superuser"}),
    "queue:look": frozenset({"operator", "superuser"}),
    "job:rebroker": frozenset({"operator", "superuser"}),
    "bulk:make": frozenset({"submitter", "session", "operator", "production", "superuser"}),
    "bulk:read": _READERS,
    "token:own": _READERS,
    "transfer:read": _READERS,
    "transfer:retry": frozenset({"operator", "superuser"}),
    "transfer:cancel": frozenset({"operator", "superuser"}),
    "link:edit": frozenset({"operator", "superuser"}),
    "share:look": frozenset({"operator", "share-editor", "superuser"}),
    "task:read": _READERS,
    "job:read": _READERS,
    "dataset:read": _READERS,
    "dataset:grant": frozenset({"submitter", "session", "operator", "superuser"}),
    "dataset:close": frozenset({"submitter", "session", "operator", "superuser"}),
    "dataset:recover": frozenset({"submitter", "session", "operator", "superuser"}),
    "decision:read": _READERS,
    "agent:read": _READERS,
    "grid:read": _READERS,
    "schema:read": _READERS,
    "view:read": _READERS,
    "view:save": _READERS,
    "config:read": _READERS,
    "config:edit": frozenset({"superuser"}),
    "share:edit": frozenset({"share-editor", "superuser"}),
    "change:draft": frozenset({"share-editor", "superuser"}),
    "site:advertise": frozenset({"enrolment"}),
    "pilot:register": frozenset({"enrolment"}),
    "pilot:match": frozenset({"pilot"}),
    "pilot:report": frozenset({"pilot"}),
    "pilot:settled": frozenset({"pilot"}),
    "job:report": frozenset({"job"}),
    "tree:edit": frozenset({"operator", "superuser"}),
    "tree:pull": frozenset({"child"}),
    "tree:report": frozenset({"child"}),
}
"""Permission -> names of the callers that have it. The session is that of a submitter."""

STRANGERS = frozenset({"anonymous", "revoked", "forged"})
"""Callers that are nobody: 401 from the API."""
STAFF = frozenset({"superuser-session"})
SESSIONS = frozenset({"anonymous", "session", "superuser-session", "superuser"})
"""Who asks the admin's pages: it knows sessions only, so one bearer, of the mightiest, stands for all of them."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who asks; `client` gives a new client each time, so that one request does not end the session of the next."""

    name: str
    client: Callable[[], Client]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a caller must get: one of `statuses`, or, where there are none, anything but 401, 403 and 5xx."""

    statuses: frozenset[int] = frozenset()
    to_login: bool = False

    def fits(self, status: int, location: str) -> bool:
        """Whether an answer is the expected one; a method that the route does not know may be refused before the caller is."""
        if status == 405:
            return True
        if self.to_login and status == 302:
            return "/login/" in location
        return status in self.statuses if self.statuses else status < 500 and status not in (401, 403)


def callers() -> list[Caller]:
    """One caller of each kind and role in VO, a stranger, a revoked and a forged token. Needs a database."""
    tokens = {role: issue_user_token(_member(role)).text for role in ROLES}
    tokens["no-role"] = issue_user_token(ensure_user("matrix-no-role")).text
    tokens["superuser"] = issue_user_token(_superuser()).text
    enrolment = issue_enrolment(QUEUE)
    tokens["enrolment"] = enrolment.text
    tokens["pilot"] = issue_pilot_token(principal_of_token(enrolment.text), uuid4()).text
    tokens["child"] = add_child(f"matrix-{uuid4()}", "", "", SYSTEM).secret
    tokens["job"] = mint_job_token(JOB, 1, 600)
    tokens["other-job"] = mint_job_token(JOB + 1, 1, 600)
    tokens["forged"] = mint_job_token(JOB, 1, 600)[:-4] + "0000"
    gone = issue_user_token(_member("operator"))
    revoke([gone.credential])
    tokens["revoked"] = gone.text
    return [
        Caller("anonymous", Client),
        Caller("session", _session(_member("submitter"))),
        Caller("superuser-session", _session(_superuser())),
        *(Caller(name, lambda text=text: bearer(text)) for name, text in tokens.items()),  # type: ignore[misc]
    ]


def bearer(text: str) -> Client:
    """A client that shows this token."""
    return Client(headers={"Authorization": f"Bearer {text}"}, raise_request_exception=False)


def methods(route: Route) -> Iterator[tuple[str, str]]:
    """The methods to try on a route, with what each asks for."""
    for method, permission in route.methods.items():
        for tried in ("GET", "POST") if method == ANY else (method,):
            yield tried, permission


def address(route: Route) -> str:
    """An address that the route answers: numbers are JOB, identifiers PILOT, texts the digits of JOB."""
    return "/" + "".join(_filled(pattern) for pattern in route.patterns)


def expected(permission: str, caller: str, path: str) -> Answer:
    """What the caller must be answered on a route that asks for this permission. KeyError: the permission is not in ALLOWED."""
    if path == "/readyz":
        return Answer(frozenset({200, 503, 405}))  # whoever asks, it says how the system is
    if permission == OPEN:
        # A public view need not look at a token; one that does refuses a bad one.
        return Answer(frozenset(range(200, 500))) if caller in ("revoked", "forged") else Answer()
    if permission == ADMIN and path.endswith("/logout/"):
        return Answer(frozenset({200, 302}))  # whoever is not staff goes to the index, which sends on to the login
    if permission == ADMIN:
        return Answer(frozenset({200, 302, 400, 403, 404})) if caller in STAFF else Answer(frozenset({302}), to_login=True)
    name = "superuser" if caller == "superuser-session" else caller
    if name in ALLOWED[permission]:
        return Answer()
    if name not in STRANGERS:
        return Answer(frozenset({403}))
    page = not path.startswith("/api/v1/") and not path.endswith((".json", ".csv")) and path != "/metrics"
    return Answer(frozenset({302}), to_login=True) if page and name == "anonymous" else Answer(frozenset({401}))


def missing() -> set[str]:
    """Permissions that stand in one of the two tables only."""
    return set(PERMISSIONS) ^ set(ALLOWED)


def _member(role: str) -> User:
    return ensure_user(f"matrix-{role}", roles=[(VO, role)])


def _superuser() -> User:
    # Superusers that hold the role as well: it must not let them submit.
    return ensure_user("matrix-superuser", superuser=True, roles=[(VO, "submitter")])


def _session(user: User) -> Callable[[], Client]:
    signed_in = Client()
    signed_in.force_login(user)

    def client() -> Client:
        made = Client(raise_request_exception=False)
        made.cookies.load(signed_in.cookies.output(header="", sep=";"))
        return made

    return client


def _filled(pattern: RoutePattern | RegexPattern) -> str:
    if isinstance(pattern, RoutePattern):
        return re.sub(r"<(?:\w+:)?(\w+)>", lambda m: _value(m[1], pattern.converters[m[1]]), str(pattern))
    text, names = normalize(str(pattern))[0]
    return text % {name: _value(name, None) for name in names}


def _value(name: str, converter: object) -> str:
    if isinstance(converter, converters.UUIDConverter):
        return str(PILOT)
    return "json" if name == "format" else str(JOB)
