"""How feeds are doing: claimed for a reading, read well, or failed."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from brokerage.models import Feed
from brokerage.rules.grid.cric import storable
from brokerage.rules.grid.update import GridUpdate

LONGEST_FAULT = 2000


def claim(feed: Feed, now: datetime, period_s: float) -> bool:
    """Take a feed whose period is over, for one run alone: whether it was."""
    return bool(Feed.objects.filter(due(now, period_s), pk=feed.pk).update(tried_at=now))


def due(now: datetime, period_s: float) -> Q:
    """Which feeds are to be read."""
    return Q(enabled=True) & (Q(tried_at=None) | Q(tried_at__lte=now - timedelta(seconds=period_s)))


def note_good(feed: Feed, wanted: GridUpdate, now: datetime) -> None:
    """The feed was read and used."""
    feed.good_at, feed.entries, feed.fault, feed.fault_since = now, wanted.size, "", None
    feed.faulty = {name: fault for faults in wanted.faulty.values() for name, fault in sorted(faults.items())}
    columns = ("good_at", "data_at", "entries", "fault", "fault_since", "faulty", "copy", "digest")
    feed.save(update_fields=columns)


def note_fault(feed: Feed, fault: str, now: datetime) -> None:
    """The feed gave nothing that can be used; its last good copy stays. Nothing happens if it is gone meanwhile."""
    feed.fault = storable(fault)[:LONGEST_FAULT]
    feed.fault_since = feed.fault_since or now
    Feed.objects.filter(pk=feed.pk).update(fault=feed.fault, fault_since=feed.fault_since)
