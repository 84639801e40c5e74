"""What the last count left of what units ran too much or too little of late."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from workqueues.models import ShareStanding, WorkQueueStanding


class Remembered(NamedTuple):
    """Unit -> HS06 that it ran too much (below 0: too little), and when that was counted."""

    ahead: dict[str, float]
    at: datetime


def remembered_of_shares() -> dict[str, Remembered]:
    """By VO, the leaves of its share tree; one statement."""
    return _by_vo(ShareStanding.objects.filter(place__isnull=False).values_list("share__vo", "share_id", "ahead", "at"))


def remembered_of_queues() -> dict[str, Remembered]:
    """By VO, the work queues that drive it, by their numbers as text; one statement."""
    rows = WorkQueueStanding.objects.filter(place__isnull=False).values_list("vo", "work_queue_id", "ahead", "at")
    return _by_vo((vo, str(id_), ahead, at) for vo, id_, ahead, at in rows)


def _by_vo(rows: Iterable[tuple[str, str, float, datetime]]) -> dict[str, Remembered]:
    by_vo: dict[str, Remembered] = {}
    for vo, unit, ahead, at in rows:
        by_vo.setdefault(vo, Remembered({}, at)).ahead[unit] = ahead
    return by_vo
