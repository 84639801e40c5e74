"""One computing queue: what it is, its jobs, its pilots and what operators set by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from brokerage.models import ComputingQueue, LocalOverride
from brokerage.queries.task_status import PILOT_SEEN_MIN
from monitoring.queries.database import alias, rows


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """`storages`: (access, storage endpoint); `last_seen`: when a pilot of it last asked; `jobs`: state -> number, alive."""

    jobs: Mapping[str, int]
    storages: list[tuple[str, str]]
    pilots: int
    last_seen: datetime | None
    overrides: list[LocalOverride]


def find_queue(name: str) -> ComputingQueue | None:
    """The queue of this name with its site."""
    return ComputingQueue.objects.using(alias()).select_related("site").filter(name=name).first()


def queue_facts(queue: ComputingQueue) -> QueueFacts:
    """Four statements, by index."""
    ((pilots, last_seen),) = rows(
        """
        SELECT count(*) FILTER (WHERE last_seen > now() - make_interval(mins => %(minutes)s)), max(last_seen)
        FROM brokerage_pilot WHERE queue_id = %(queue)s
        """,
        {"queue": queue.id, "minutes": PILOT_SEEN_MIN},
    )
    return QueueFacts(
        jobs=dict(
            rows(
                "SELECT status, count(*) FROM brokerage_job WHERE computing_queue_id = %(queue)s AND ended_at IS NULL "
                "GROUP BY status ORDER BY status",
                {"queue": queue.id},
            )
        ),
        storages=list(queue.storages.using(alias()).order_by("access", "position").values_list("access", "storage_id")),
        pilots=pilots,
        last_seen=last_seen,
        overrides=list(LocalOverride.objects.using(alias()).filter(kind="queue", name=queue.name)),
    )
