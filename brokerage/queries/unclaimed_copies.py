"""Copies that wait for a mover: whether one is at work at all, and whether it has taken this copy."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.db.models.functions import Now

from brokerage.models import LocalCopy

UNCLAIMED = Q(status="waiting") | Q(status="copying", claimed_until__lt=Now())

_WAITING = """
SELECT count(*), coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 FROM brokerage_localcopy
WHERE (status = 'waiting' OR (status = 'copying' AND claimed_until < now()))
    AND NOT EXISTS (SELECT FROM brokerage_localcopy WHERE status = 'copying' AND claimed_until >= now())
"""


class WaitingCopies(NamedTuple):
    """Copies that wait while no mover holds any, and how long the oldest does, s."""

    copies: int
    seconds: float


def without_mover(database: BaseDatabaseWrapper) -> WaitingCopies:
    """Those that nobody takes; none while some mover is at work."""
    with database.cursor() as cursor:
        cursor.execute(_WAITING)
        return WaitingCopies(*cursor.fetchone())


def unclaimed_of(keys: Collection[UUID], using: str = DEFAULT_DB_ALIAS) -> frozenset[UUID]:
    """The attempts of these whose copies wait for a mover; no statement where there are none."""
    if not keys:
        return frozenset()
    return frozenset(LocalCopy.objects.using(using).filter(UNCLAIMED, key__in=keys).values_list("key", flat=True))


def is_unclaimed(key: UUID | None, using: str = DEFAULT_DB_ALIAS) -> bool:
    """Whether the copy of an attempt waits for a mover."""
    return key is not None and bool(unclaimed_of([key], using))


def moverless(database: BaseDatabaseWrapper, longest_s: float) -> list[str]:
    """A sentence where copies have waited longer than that and no mover is at work."""
    waiting = without_mover(database)
    if not waiting.copies or waiting.seconds <= longest_s:
        return []
    copies = f"{waiting.copies:,} {'copy waits' if waiting.copies == 1 else 'copies wait'}"
    return [f"{copies} for a mover, the oldest for {waiting.seconds:.0f} s: no process `manage.py mover` is at work"]
