"""Child brokers: let in, drained, revoked; and which of them sends a message. Rows W6 and X5.

Each act leaves an audit row in its transaction. Not here: the elements that a child has (they return by their leases).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models.functions import Coalesce, Now

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.credentials import issue_child_token, revoke
from broker_site.foundation.access.models import Credential
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import not_authenticated
from broker_site.foundation.kernel.verdict import Problem
from workqueues.models import ChildBroker
from workqueues.queries.speakers import Speaker, speaker
from workqueues.rules.elements.child_names import child_problems, grace_problems


class BadChild(Exception):
    """A child broker cannot be so; nothing was changed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in problems))
        self.problems = tuple(problems)


class NewToken(NamedTuple):
    """A child broker and, this once, the text of its token."""

    child: ChildBroker
    secret: str


def child_of(principal: Principal) -> Speaker:
    """The child broker whose token was shown; Refused(401) once that is revoked, whatever this process remembers of it."""
    return child_with(principal.credential or 0)


def child_with(credential: int) -> Speaker:
    """The child broker with this credential; Refused(401) once that is revoked."""
    child = speaker(credential)
    if child is None:
        raise not_authenticated("The token of this child broker was revoked.")
    return child


def add_child(name: str, team: str, vo: str, by: Principal) -> NewToken:
    """Let a broker pull elements of this VO (empty: of all), and none of other teams (empty: of any). Raises BadChild."""
    if problems := child_problems(name, team, vo):
        raise BadChild(problems)
    try:
        with transaction.atomic():
            issued = issue_child_token(vo=vo, note=name, by=by)
            child = ChildBroker.objects.create(name=name, team=team, vo=vo, credential=issued.credential)
            child.refresh_from_db()
            audit("child.add", by, _named(child), vo=vo, after={"team": team, "vo": vo, "credential": issued.credential.prefix})
    except IntegrityError:
        raise BadChild([Problem("name", "unique", f"there is a child broker {name}")]) from None
    return NewToken(child, issued.text)


@transaction.atomic
def drain_child(child: ChildBroker, grace_s: float, by: Principal) -> ChildBroker:
    """Give it nothing new from now on; what it still has in so many seconds is taken back then. Raises BadChild.

    Said again, only the end is another.
    """
    if problems := grace_problems(grace_s):
        raise BadChild(problems)
    since, until = Coalesce("drain_since", Now()), Now() + timedelta(seconds=grace_s)
    return _drained(_locked(child), since, until, by, "child.drain")


@transaction.atomic
def undrain_child(child: ChildBroker, by: Principal) -> ChildBroker:
    """Let it pull again."""
    return _drained(_locked(child), None, None, by, "child.undrain")


@transaction.atomic
def revoke_child(child: ChildBroker, by: Principal, reason: str = "") -> int:
    """Its token is good no longer, from the next message on; what it has returns when its leases are over. 0: it was before."""
    row = _locked(child)
    revoked = revoke(Credential.objects.filter(pk=row.credential_id, revoked_at__isnull=True), reason=reason, by=by)
    if revoked:
        audit("child.revoke", by, _named(row), vo=row.vo, reason=reason)
    return revoked


@transaction.atomic
def renew_child(child: ChildBroker, by: Principal) -> NewToken:
    """A new token for it; the one before is good no longer. So comes back a child that was revoked, or whose token was lost."""
    row = _locked(child)
    revoke_child(row, by, "a new token was made")
    issued = issue_child_token(vo=row.vo, note=row.name, by=by)
    row.credential = issued.credential
    row.save(update_fields=["credential"])
    audit("child.renew", by, _named(row), vo=row.vo, after={"credential": issued.credential.prefix})
    return NewToken(row, issued.text)


def _locked(child: ChildBroker) -> ChildBroker:
    return ChildBroker.objects.select_for_update(no_key=True).get(pk=child.pk)


def _drained(row: ChildBroker, since: Any, until: Any, by: Principal, act: str) -> ChildBroker:
    before = _drain(row)
    row.drain_since, row.drain_until = since, until
    row.save(update_fields=["drain_since", "drain_until"])
    row.refresh_from_db(fields=["drain_since", "drain_until"])
    audit(act, by, _named(row), vo=row.vo, before=before, after=_drain(row))
    return row


def _drain(row: ChildBroker) -> dict[str, str | None]:
    times = {"drain_since": row.drain_since, "drain_until": row.drain_until}
    return {name: at.isoformat() if at else None for name, at in times.items()}


def _named(child: ChildBroker) -> str:
    return f"child broker {child.name}"
