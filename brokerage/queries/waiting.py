"""The task queues of a computing queue that have waiting jobs, for matching.

Kept for a moment per process: groups change slowly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock

from django.db import connection

from brokerage.rules.dispatch.matching import Requirement, Resource, WaitingQueue, fitting, rank
from workqueues.queries.agent_work import PLACE, STANDINGS

FRESH_S = 0.5
"""How old the list may be.

A match that finds nothing in it reads again, so a new job waits no longer than the pilot's next ask.
"""


@dataclass(slots=True)
class _WaitingList:
    at: float
    groups: list[WaitingQueue]


@dataclass(slots=True)
class WaitingWork:
    """The kept lists of this process, by computing queue."""

    _kept: dict[int, _WaitingList] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def offers(self, queue_id: int, offer: Resource, *, fresh: bool = False) -> Iterator[WaitingQueue]:
        """The task queues that suit what a pilot offers, best first.

        Whoever asks for the next one says that the last had no job: it is left out until the list is read again.
        """
        for waiting in fitting(self.of(queue_id, offer.queue, fresh=fresh), offer):
            yield waiting
            with self._lock:
                kept = self._kept[queue_id]
                kept.groups = [other for other in kept.groups if other is not waiting]

    def of(self, queue_id: int, queue_name: str, *, fresh: bool = False) -> list[WaitingQueue]:
        """Task queues with at least one ready job, in the order in which they are offered."""
        with self._lock:
            kept = self._kept.get(queue_id)
            if kept is None or fresh or time.monotonic() - kept.at > FRESH_S:
                kept = _WaitingList(time.monotonic(), _read(queue_id, queue_name))
                self._kept[queue_id] = kept
            return kept.groups

    def forget(self) -> None:
        """Read anew at the next use."""
        with self._lock:
            self._kept.clear()


WAITING = WaitingWork()


def _read(queue_id: int, queue_name: str) -> list[WaitingQueue]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT t.id, t.core_count, t.ram_mb, t.disk_mb, t.walltime_s, t.vo, best.ready_priority, {PLACE},
                t.prod_source_label, best.id
            FROM brokerage_taskqueue t {STANDINGS} CROSS JOIN LATERAL (
                SELECT j.ready_priority, j.id FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL
                ORDER BY j.ready_priority, j.id LIMIT 1) best
            WHERE t.computing_queue_id = %s
            """,
            [queue_id],
        )
        groups = (
            WaitingQueue(id_, Requirement(queue_name, cores, ram, disk, walltime, vo), -ready, place, label, job_id)
            for id_, cores, ram, disk, walltime, vo, ready, place, label, job_id in cursor.fetchall()
        )
        return sorted(groups, key=rank)
