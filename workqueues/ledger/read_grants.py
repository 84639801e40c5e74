"""Grants to read datasets of a VO: given and withdrawn, with the audit row in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.models import ReadGrant
from workqueues.rules.refine.data_rights import Grant


class BadGrant(Exception):
    """The grant cannot be given; nothing was changed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(p.message for p in problems))
        self.problems = tuple(problems)


def give_grant(grant: Grant, ends_at: datetime | None, by: Principal) -> ReadGrant:
    """Give a grant that was checked; one that said the same and has ended gives way. Raises BadGrant: there is one."""
    try:
        with transaction.atomic():
            ReadGrant.objects.filter(**grant._asdict(), ends_at__lte=Now()).delete()
            given = ReadGrant.objects.create(**grant._asdict(), ends_at=ends_at, made_by=by.name)
            given.refresh_from_db()
            audit("dataset.grant", by, f"read grant {given.id}", vo=grant.vo, after=_values(given))
            return given
    except IntegrityError:
        why = "there is a grant for the same datasets and the same grantee; withdraw it before you give another"
        raise BadGrant([problem("pattern", "unique", why)]) from None


def withdraw_grant(grant: ReadGrant, by: Principal) -> None:
    """From now on nobody reads by it; jobs that were made go on."""
    with transaction.atomic():
        audit("dataset.withdraw", by, f"read grant {grant.id}", vo=grant.vo, before=_values(grant))
        grant.delete()


def _values(grant: ReadGrant) -> dict[str, Any]:
    ends_at = grant.ends_at.isoformat() if grant.ends_at else None
    return {name: getattr(grant, name) for name in Grant._fields} | {"ends_at": ends_at}
