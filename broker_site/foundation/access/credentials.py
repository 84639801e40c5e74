"""Making and revoking stored credentials and roles. Each act leaves an audit row in the same transaction.

The text of a secret exists only in what `issue_*` returns. Not here: reading credentials (`authentication`), job tokens
(`tokens`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.authentication import forget_verified
from broker_site.foundation.access.models import Credential, Role, User
from broker_site.foundation.access.principal import SYSTEM, Principal
from broker_site.foundation.access.problems import not_authenticated
from broker_site.foundation.access.roles import ROLES
from broker_site.foundation.access.tokens import digest, new_secret, shown
from broker_site.foundation.kernel import clock

PILOT_SECONDS = 86_400.0
"""Longest life of a pilot token."""


MOST_QUEUES = 100
"""Computing queues of one enrolment secret."""
LONGEST_GROUP = 64
"""Characters of the name of a working group."""
PlaceCheck = Callable[[Sequence[str], str], Mapping[str, str]]
_place_checks: list[PlaceCheck] = []


def check_places_with(check: PlaceCheck) -> None:
    """Say who knows computing queues and their sites: the grid does, which is above this app."""
    _place_checks[:] = [check]


def enrolment_faults(
    queues: Sequence[str], site: str, owner: str = "", owner_group: str = "", *, private: bool
) -> dict[str, str]:
    """What is wrong with an enrolment for these computing queues at this site (empty: any), by field: `queues`, `site`, `owner`
    or `owner_group`.
    """
    faults = dict(_place_checks[0](queues, site)) if _place_checks else {}
    if len(queues) > MOST_QUEUES:
        faults = {"queues": f"at most {MOST_QUEUES} computing queues, found {len(queues)}"}
    if private and not owner:
        faults["owner"] = "a private enrolment needs the owner whose work its pilots do"
    elif private and not User.objects.filter(username=owner, is_active=True).exists():
        faults["owner"] = f"there is no active user {owner}"
    elif not private:
        words = "only a private enrolment has an owner, and a group"
        faults |= {field: words for field, given in (("owner", owner), ("owner_group", owner_group)) if given}
    if (size := len(owner_group)) > LONGEST_GROUP:
        faults["owner_group"] = f"at most {LONGEST_GROUP} characters, found {size}"
    return faults


@dataclass(frozen=True, slots=True)
class IssuedCredential:
    """A new credential and, this once, its text."""

    text: str
    credential: Credential


@transaction.atomic
def issue_user_token(
    user: User, *, vo: str = "", roles: Iterable[str] = (), seconds: float | None = None, note: str = "", by: Principal = SYSTEM
) -> IssuedCredential:
    """A token that stands on the user's roles at the time of use, limited to `vo` and `roles` where given. ValueError:
    unknown role.
    """
    limit = _known_roles(roles)
    row = Credential(kind=Credential.Kind.USER, user=user, vo=vo, claims={"roles": limit} if limit else {}, note=note)
    return _issue(row, seconds, by)


@transaction.atomic
def issue_enrolment(
    *queues: str,
    owner: str = "",
    owner_group: str = "",
    site: str = "",
    vo: str = "",
    user: User | None = None,
    seconds: float | None = None,
    note: str = "",
    by: Principal = SYSTEM,
) -> IssuedCredential:
    """A secret with which pilots of these computing queues enrol; with `user` it stands on that user's role of operator.

    With `owner` they are private pilots: they do the work of this user only, in this working group (empty: in any).
    """
    kind = Credential.PilotKind.PRIVATE if owner else Credential.PilotKind.GENERIC
    row = Credential(kind=Credential.Kind.ENROLMENT, queues=list(dict.fromkeys(queues)), site=site, vo=vo, user=user, note=note)
    row.pilot_kind, row.owner, row.owner_group = kind, owner, owner_group
    return _issue(row, seconds, by)


@transaction.atomic
def issue_pilot_token(
    enrolment: Principal, pilot_id: UUID, seconds: float = PILOT_SECONDS, *, queue: str = ""
) -> IssuedCredential:
    """A token for one pilot at one queue of the enrolment (may be left out where that has but one), for at most PILOT_SECONDS.
    Refused(401) if the enrolment was revoked meanwhile. ValueError: the queue is not one of the enrolment's.

    The enrolment's row is locked until the commit, so that a revocation meets every pilot or refuses it. Its audit row is that
    of the call that enrols, which the caller writes or leaves to the middleware.
    """
    parent = Credential.objects.select_for_update().filter(pk=enrolment.credential or 0, revoked_at__isnull=True).first()
    if parent is None:
        raise not_authenticated("The enrolment secret was revoked.")
    if (at := queue or enrolment.queue) not in parent.queues:
        raise ValueError(f"the enrolment is for {', '.join(parent.queues)}, not for {at or 'no queue'}")
    row = Credential(
        kind=Credential.Kind.PILOT,
        parent=parent,
        user=parent.user,
        vo=parent.vo,
        site=parent.site,
        queues=[at],
        pilot_kind=parent.pilot_kind,
        owner=parent.owner,
        owner_group=parent.owner_group,
        subject=pilot_id,
    )
    return _store(row, min(seconds, PILOT_SECONDS))


@transaction.atomic
def issue_child_token(*, vo: str = "", note: str = "", by: Principal = SYSTEM) -> IssuedCredential:
    """A token with which a child broker pulls work of this VO (empty: of all), until it is revoked. `note`: the child's name."""
    return _issue(Credential(kind=Credential.Kind.CHILD, vo=vo, note=note), None, by)


@transaction.atomic
def revoke(credentials: Iterable[Credential], *, reason: str = "", by: Principal = SYSTEM) -> int:
    """Revoke these and, of enrolments, their pilots; the number of credentials that were good before. Effective within five
    seconds.
    """
    total = 0
    for credential in credentials:
        good = Credential.objects.filter(revoked_at__isnull=True)
        # The enrolment first: its row is the lock that a pilot being enrolled waits for or is waited for.
        count = good.filter(pk=credential.pk).update(revoked_at=Now())
        count += good.filter(parent_id=credential.pk).update(revoked_at=Now())
        total += count
        audit("credential.revoke", by, _named(credential), vo=credential.vo, reason=reason, after={"revoked": count})
    transaction.on_commit(forget_verified)
    return total


@transaction.atomic
def give_role(user: User, vo: str, role: str, *, by: Principal = SYSTEM) -> bool:
    """Give the user a role in a VO; whether it is new. ValueError: unknown role."""
    _known_roles([role])
    _, new = Role.objects.get_or_create(user=user, vo=vo, role=role)
    if new:
        audit("role.give", by, f"user {user.username}", vo=vo, after={"role": role})
    return new


@transaction.atomic
def ensure_user(
    name: str,
    *,
    password: str | None = None,
    superuser: bool = False,
    roles: Iterable[tuple[str, str]] = (),
) -> User:
    """The user of this name, made if there is none, with the given (VO, role) pairs added; a given password and superuser are
    set.
    """
    user, new = User.objects.get_or_create(username=name)
    if new:
        user.set_unusable_password()
        audit("user.create", SYSTEM, f"user {name}", after={"superuser": superuser})
    if password is not None:
        user.set_password(password)
    if superuser:
        user.is_staff = user.is_superuser = True
    user.save()
    for vo, role in roles:
        give_role(user, vo, role)
    return user


def forget_expired(days: float = 30) -> int:
    """Delete credentials that expired more than `days` ago, pilots before the enrolments they come from; the number deleted."""
    old = Q(expires_at__lt=clock.now() - timedelta(days=days))
    pilots, _ = Credential.objects.filter(old, parent__isnull=False).delete()
    others, _ = Credential.objects.filter(old, children__isnull=True).delete()
    return pilots + others


def _issue(row: Credential, seconds: float | None, by: Principal) -> IssuedCredential:
    issued = _store(row, seconds)
    after = {"kind": row.kind, "queues": row.queues, "user": row.user.username if row.user else "", "limit": row.claims}
    if row.owner:
        after |= {"pilot_kind": row.pilot_kind, "owner": row.owner, "owner_group": row.owner_group}
    audit("credential.create", by, _named(row), vo=row.vo, after=after)
    return issued


def _store(row: Credential, seconds: float | None) -> IssuedCredential:
    text = new_secret(row.kind)
    row.prefix, row.secret = shown(text), digest(text)
    row.expires_at = None if seconds is None else clock.now() + timedelta(seconds=seconds)
    row.save(force_insert=True)
    return IssuedCredential(text, row)


def _named(credential: Credential) -> str:
    return f"credential {credential.prefix}"


def _known_roles(roles: Iterable[str]) -> list[str]:
    wanted = sorted(set(roles))
    if unknown := set(wanted) - set(ROLES):
        raise ValueError(f"unknown role {', '.join(sorted(unknown))}; there are {', '.join(ROLES)}")
    return wanted
