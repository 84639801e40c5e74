"""The computing queues with their jobs, and the nuclei, as columns for one cycle of the brokerage."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models.functions import Now

from brokerage.models import ComputingQueue, Pilot, QueueStorage, Site
from brokerage.rules.snapshot import Nuclei, Queues

COUNTED = ("defined", "assigned", "activated", "starting", "running", "transferring")
"""States whose jobs are columns; `sent` counts as starting."""


def load_queues() -> Queues:
    """Every computing queue with the number of its jobs per state; three queries, whatever the size."""
    counts = job_counts()
    pilots = set(Pilot.objects.filter(last_seen__gte=Now() - timedelta(hours=3)).values_list("queue_id", flat=True).distinct())
    space = _output_space()
    return Queues.from_rows(
        _row(queue, counts[queue.id], queue.id in pilots, space.get(queue.id)) for queue in ComputingQueue.objects.all()
    )


def job_counts() -> dict[int, dict[str, int]]:
    """Jobs that have not ended: computing queue -> status -> number."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT computing_queue_id, CASE status WHEN 'sent' THEN 'starting' ELSE status END, count(*) FROM brokerage_job
            WHERE ended_at IS NULL GROUP BY 1, 2
            """
        )
        counts: dict[int, dict[str, int]] = defaultdict(dict)
        for queue, status, n in cursor.fetchall():
            counts[queue][status] = n
        return counts


def _output_space() -> dict[int, float]:
    """Computing queue -> free space of its default output storage, GB, where that is known."""
    rows = QueueStorage.objects.filter(access="write_lan", position=1, storage__free_gb__isnull=False)
    return {queue: free for queue, free in rows.values_list("queue_id", "storage__free_gb") if free is not None}


def _row(queue: ComputingQueue, counts: dict[str, int], piloted: bool, space_gb: float | None) -> dict[str, Any]:
    attributes = queue.attributes
    return {
        "name": queue.name,
        "site": queue.site_id,
        "status": queue.status,
        "corecount": queue.corecount,
        "corepower": queue.corepower,
        "maxrss": queue.maxrss,
        "minrss": queue.minrss,
        "maxtime": queue.maxtime,
        "mintime": queue.mintime,
        "maxwdir": queue.maxwdir,
        "direct_access_lan": attributes.get("direct_access_lan") is True,
        "space_gb": space_gb,
        "allowed_processing": _switch(queue.catchall, "allowed_processing"),
        "excluded_processing": _switch(queue.catchall, "excluded_processing"),
        "allow_no_pilot": "allow_no_pilot" in queue.catchall.split(","),
        "requests_3h": int(piloted),
        **{state: counts.get(state, 0) for state in COUNTED},
    }


def _switch(catchall: str, name: str) -> str:
    """The value of `name=value` in a catchall list; the name is compared whole."""
    return next((value for key, _, value in (item.partition("=") for item in catchall.split(",")) if key.strip() == name), "")


def load_nuclei() -> Nuclei:
    """Every site that may be a nucleus, with the free and expired space of its output storage (the largest that is not tape)."""
    rows = []
    for site in Site.objects.filter(nucleus=True).prefetch_related("storages"):
        room = [(s.free_gb or 0) + (s.expired_gb or 0) for s in site.storages.all() if not s.is_tape and s.state == "ACTIVE"]
        rows.append({"name": site.name, "state": site.state, "free_gb": max(room, default=0.0)})
    return Nuclei.from_rows(rows)
