"""From a request to a principal: the bearer token first, else the session.

Rights are read at use: a user's roles for every request, a stored credential, or that it was withdrawn, at most CACHE_S seconds
ago. Not here: what the principal may do (`permissions`) and how credentials are made (`credentials`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase

from broker_site.foundation.access.alerts import alert
from broker_site.foundation.access.backend import all_roles
from broker_site.foundation.access.models import Credential, Role, User
from broker_site.foundation.access.principal import ANONYMOUS, Principal
from broker_site.foundation.access.problems import Refused, not_authenticated
from broker_site.foundation.access.strangers import STRANGERS, client_address
from broker_site.foundation.access.token_limit import refuse_too_many
from broker_site.foundation.access.tokens import JOB_PREFIX, BadToken, RevokedToken, digest, looks_stored, read_job_token
from broker_site.foundation.kernel import clock
from broker_site.foundation.sql.prepared import Prepared

CACHE_S = 4.0
"""How long a process trusts what it read of a credential; a revocation is effective everywhere within five seconds."""
PILOT_CACHE_S = CHILD_CACHE_S = 60.0
"""How long of one of a pilot, which asks often: those withdrawn meanwhile stand in a list that is read every CACHE_S. And of one
of a child broker: whether that was revoked is asked again with every message of it.
"""
_LASTS_S = {Credential.Kind.PILOT: PILOT_CACHE_S, Credential.Kind.CHILD: CHILD_CACHE_S}
_CACHE_MOST = 20_000
_KEEPER = "operator"  # the role on which an enrolment that belongs to a user, and its pilots, stand

_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]+) *", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class _StoredCredential:
    """What was read of a stored credential, and until when (monotonic seconds) this process believes it."""

    id: int
    kind: str
    prefix: str
    user_id: int | None
    vo: str
    site: str
    queues: tuple[str, ...]
    pilot_kind: str
    owner: str
    owner_group: str
    subject: UUID | None
    note: str
    roles: frozenset[str] | None
    expires_at: datetime | None
    until: float


_OF_SECRET = Prepared(
    "credential_of_secret",
    "text",
    """
SELECT id, kind, prefix, user_id, vo, site, queues, pilot_kind, owner, owner_group, subject::text, note,
    (claims -> 'roles')::text, expires_at, revoked_at, last_used
FROM access_credential WHERE secret = $1
""",
)
_verified: dict[str, _StoredCredential] = {}
_found_good: set[str] = set()
"""Digests of credentials and sessions that were good at some time: these are asked for again whoever else shares their
address.
"""
_withdrawn: tuple[float, frozenset[int]] = (0.0, frozenset())


def authenticate(request: HttpRequest) -> Principal:
    """Who sent this request; ANONYMOUS when it shows nothing. Also left in `request.principal`.

    Raises Refused(401) when it shows a bearer token that is not good: a bad token never falls back to the session; 429 for one
    that this process has not yet found good, from an address that has shown too many bad ones, and for a token of a user that
    asks too often.
    """
    known = getattr(request, "principal", None)
    if known is not None:
        return cast("Principal", known)
    refused: Refused | None = getattr(request, "refused_credential", None)
    if refused is not None:  # asked again for the same request
        raise refused
    try:
        principal = _by_bearer(request) if shows_bearer(request) else _by_session(request)
        refuse_too_many(principal, request.method or "", request.path_info)
    except Refused as refusal:
        request.refused_credential = refusal  # type: ignore[attr-defined]
        raise
    request.principal = principal  # type: ignore[attr-defined]
    return principal


def shows_bearer(request: HttpRequest) -> bool:
    """Whether the request carries a bearer token, good or not."""
    return request.META.get("HTTP_AUTHORIZATION", "")[:6].lower() == "bearer"


def shows_known_session(request: HttpRequest) -> bool:
    """Whether the session that the request names was good before."""
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    return key is not None and digest(key) in _found_good


def principal_of_token(text: str) -> Principal:
    """The principal of a token of any kind; BadToken when it is not good."""
    if text.startswith(JOB_PREFIX):
        return _job(text)
    if not looks_stored(text):
        raise BadToken("this is not a token of ours")
    verified = _verify(text)
    if verified.expires_at is not None and verified.expires_at <= clock.now():
        raise BadToken("the token has expired")
    if verified.kind == Credential.Kind.USER:
        return _user_of_token(verified)
    return _child(verified) if verified.kind == Credential.Kind.CHILD else _worker(verified)


def forget_verified() -> None:
    """Read every credential anew from now on; for this process only."""
    global _withdrawn
    _verified.clear()
    _withdrawn = (0.0, frozenset())


class BearerMiddleware:
    """Takes the cookies from a request that shows a bearer token, and with them the need of a CSRF token.

    A foreign page can make a browser send our cookies but not an Authorization header; a request with the header acts by the
    header alone. Stands before sessions and CSRF.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if shows_bearer(request):
            request.COOKIES = {}
            request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
        return self.get_response(request)


def _by_bearer(request: HttpRequest) -> Principal:
    match = _BEARER.fullmatch(request.META["HTTP_AUTHORIZATION"])
    if match is None:
        raise not_authenticated("The Authorization header is malformed.")
    if not _known_good(match.group(1)):
        STRANGERS.refuse_spent(client_address(request))
    try:
        return principal_of_token(match.group(1))
    except BadToken as exc:
        STRANGERS.failed(client_address(request))
        if isinstance(exc, RevokedToken):
            address = client_address(request)
            alert("revoked_token", f"credential {exc.credential}", f"it was revoked, and shown again from {address}")
        raise not_authenticated(f"The token is not accepted: {exc}.") from None


def _by_session(request: HttpRequest) -> Principal:
    user = getattr(request, "user", None)
    if not isinstance(user, User) or not user.is_active:
        return ANONYMOUS
    if key := request.COOKIES.get(settings.SESSION_COOKIE_NAME):
        _remember_good(digest(key))
    return Principal("user", user.username, user=user, superuser=user.is_superuser, roles=all_roles(user))


def _remember_good(key: str) -> None:
    if len(_found_good) >= _CACHE_MOST:
        _found_good.clear()
    _found_good.add(key)


def _known_good(text: str) -> bool:
    """Whether to look at a token costs no query, or was worth one before."""
    return text.startswith(JOB_PREFIX) or not looks_stored(text) or digest(text) in _found_good


def _job(text: str) -> Principal:
    claim = read_job_token(text)
    if claim.pilot and claim.pilot in _withdrawn_pilots():
        raise RevokedToken("its pilot's credential was revoked", f"pilot credential {claim.pilot}")
    return Principal("job", f"job {claim.job_id}, epoch {claim.epoch}", job=claim)


def _user_of_token(verified: _StoredCredential) -> Principal:
    user = User.objects.filter(pk=verified.user_id or 0, is_active=True).first()
    if user is None:
        raise BadToken("its user is not active")
    limited = bool(verified.vo) or verified.roles is not None
    roles = {
        vo: held if verified.roles is None else held & verified.roles
        for vo, held in all_roles(user).items()
        if not verified.vo or vo == verified.vo
    }
    return Principal(
        "user",
        user.username,
        user=user,
        superuser=user.is_superuser and not limited,
        roles=roles,
        vo=verified.vo,
        credential=verified.id,
        prefix=verified.prefix,
        limited=limited,
    )


def _worker(verified: _StoredCredential) -> Principal:
    """An enrolment secret or a pilot; one that belongs to a user stands on that user's role at this moment."""
    if verified.user_id is not None and not _keepers(verified.vo).filter(pk=verified.user_id).exists():
        raise BadToken(f"its user is not active or no longer {_KEEPER}")
    pilot = verified.kind == Credential.Kind.PILOT
    return Principal(
        "pilot" if pilot else "enrolment",
        f"pilot {verified.subject}" if pilot else f"enrolment of {_some(verified.queues)}",
        site=verified.site,
        queues=verified.queues,
        vo=verified.vo,
        pilot_kind=verified.pilot_kind,
        owner=verified.owner,
        owner_group=verified.owner_group,
        subject=verified.subject,
        credential=verified.id,
        prefix=verified.prefix,
    )


def _child(verified: _StoredCredential) -> Principal:
    """A child broker, under the name that was noted with its token."""
    name = f"child broker {verified.note}".strip()
    return Principal("child", name, vo=verified.vo, credential=verified.id, prefix=verified.prefix)


def _some(queues: Sequence[str]) -> str:
    """The first of the queues, and how many there are beside it: a name has an end."""
    return f"{queues[0]} and {len(queues) - 1} more" if len(queues) > 1 else "".join(queues)


def roles_of(user_name: str, vo: str) -> frozenset[str]:
    """The roles in a VO of a user who may not be the caller; none for a user who is not active or does not exist."""
    held = Role.objects.filter(user__username=user_name, user__is_active=True, vo=vo)
    return frozenset(held.values_list("role", flat=True))


def _keepers(vo: str) -> QuerySet[User]:
    """Users on whom an enrolment for this VO (empty: any) may stand."""
    roles = Role.objects.filter(user=OuterRef("pk"), role=_KEEPER)
    return User.objects.filter(Q(is_superuser=True) | Exists(roles.filter(vo=vo) if vo else roles), is_active=True)


def _verify(text: str) -> _StoredCredential:
    key, now = digest(text), time.monotonic()
    known = _verified.get(key)
    if known is not None and now < known.until and not (known.kind == Credential.Kind.PILOT and known.id in _withdrawn_pilots()):
        return known
    _verified.pop(key, None)
    rows = _OF_SECRET.run(key)
    if not rows:
        raise BadToken("it is unknown")
    *told, subject, note, roles, expires_at, revoked_at, last_used = rows[0]
    id_, kind, prefix, user_id, vo, site, queues, pilot_kind, owner, owner_group = told
    if revoked_at is not None:
        raise RevokedToken("it was revoked", f"{kind} {prefix}")
    today = clock.now().date()
    if last_used != today:
        Credential.objects.filter(pk=id_).update(last_used=today)
    if len(_verified) >= _CACHE_MOST:
        _verified.clear()
    _remember_good(key)
    _verified[key] = verified = _StoredCredential(
        id=id_,
        kind=kind,
        prefix=prefix,
        user_id=user_id,
        vo=vo,
        site=site,
        queues=tuple(queues),
        pilot_kind=pilot_kind,
        owner=owner,
        owner_group=owner_group,
        subject=UUID(subject) if subject else None,
        note=note,
        roles=frozenset(json.loads(roles)) if roles not in (None, "null") else None,
        expires_at=expires_at,
        until=now + _LASTS_S.get(kind, CACHE_S),
    )
    return verified


def _withdrawn_pilots() -> frozenset[int]:
    """Ids of pilot credentials that are no longer good: so die what is known of them here, and the job tokens of their pilots,
    which are not stored.
    """
    global _withdrawn
    now = time.monotonic()
    if now >= _withdrawn[0]:
        pilots = Credential.objects.filter(kind=Credential.Kind.PILOT)
        gone = set(pilots.filter(revoked_at__isnull=False).values_list("pk", flat=True))
        lent = pilots.filter(revoked_at__isnull=True, user__isnull=False)
        for vo in lent.values_list("vo", flat=True).distinct():
            gone.update(lent.filter(vo=vo).exclude(user__in=_keepers(vo)).values_list("pk", flat=True))
        _withdrawn = (now + CACHE_S, frozenset(gone))
    return _withdrawn[1]
