"""Where shares and work queues stand, written anew by the agent share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from workqueues.models import GlobalShare, ShareStanding, WorkQueue, WorkQueueStanding
from workqueues.rules.shares.usage import UnitStanding

AMOUNTS = ("hs06_running", "hs06_queued", "jobs_running", "jobs_queued", "cores_running", "cores_queued")
POSITION = ("place", "above", "ahead", "percent", "target", "entitled")
COLUMNS = ("at", *POSITION, *AMOUNTS)


def note_standings(standings: Iterable[UnitStanding], at: datetime) -> int:
    """Replace what is known of these shares: how many. A share that is gone meanwhile is passed over."""
    names = set(GlobalShare.objects.values_list("name", flat=True))
    rows = [ShareStanding(share_id=s.name, **_columns(s, at)) for s in standings if s.name in names]
    ShareStanding.objects.bulk_create(rows, update_conflicts=True, unique_fields=["share"], update_fields=COLUMNS)
    return len(rows)


def note_queue_standings(standings: Mapping[str, Iterable[UnitStanding]], at: datetime) -> int:
    """Replace what is known of work queues, by VO: how many. Those that are not named have no standing any more."""
    ids = set(WorkQueue.objects.values_list("id", flat=True))
    rows = [
        WorkQueueStanding(vo=vo, work_queue_id=int(s.name), **_columns(s, at))
        for vo, of_vo in standings.items()
        for s in of_vo
        if int(s.name) in ids
    ]
    WorkQueueStanding.objects.bulk_create(rows, update_conflicts=True, unique_fields=["work_queue", "vo"], update_fields=COLUMNS)
    WorkQueueStanding.objects.filter(at__lt=at).delete()
    return len(rows)


def _columns(standing: UnitStanding, at: datetime) -> dict[str, Any]:
    position = {name: getattr(standing, name) for name in POSITION}
    return {"at": at, **position, **{name: getattr(standing.use, name) for name in AMOUNTS}}
