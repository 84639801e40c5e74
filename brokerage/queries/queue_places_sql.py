"""The computing queues by name, with the storage endpoint that jobs there write to."""

from __future__ import annotations

from dataclasses import dataclass

from brokerage.models import ComputingQueue, QueueStorage


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """What generating jobs for a queue needs: sizes in MB, times in s, 0 = no limit."""

    id: int
    name: str
    corecount: int
    maxrss: int
    maxwdir: int
    maxtime: int
    storage: str


def queue_places() -> dict[str, QueuePlace]:
    """Every computing queue by name."""
    storages = dict(QueueStorage.objects.filter(access="write_lan", position=1).values_list("queue_id", "storage_id"))
    return {
        q.name: QueuePlace(q.id, q.name, q.corecount, q.maxrss, q.maxwdir, q.maxtime, storages.get(q.id, ""))
        for q in ComputingQueue.objects.only("id", "name", "corecount", "maxrss", "maxwdir", "maxtime")
    }
