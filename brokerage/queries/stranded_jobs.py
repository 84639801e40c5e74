"""Queues with jobs as they serve them, and the jobs that wait where they cannot start (decisions C7, D18)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connections

from brokerage.rules.dispatch.stranding import QueueService
from brokerage.states import JOB
from workqueues.rules.throttle.units import Group

_SERVICES = """
SELECT q.id, q.name, q.status, EXISTS (
        SELECT FROM brokerage_queuestorage w WHERE w.queue_id = q.id AND w.access LIKE 'write\\_%%'
    ) AND NOT EXISTS (
        SELECT FROM brokerage_queuestorage w JOIN brokerage_storageendpoint s ON s.name = w.storage_id
        WHERE w.queue_id = q.id AND w.access LIKE 'write\\_%%' AND s.root_state <> 'down'
    ), q.catchall, q.attributes -> 'params', extract(epoch FROM now() - q.status_since)::float8,
    extract(epoch FROM now() - coalesce(seen.at, oldest.since))::float8
FROM brokerage_computingqueue q CROSS JOIN LATERAL (
    SELECT j.status_since AS since FROM brokerage_job j
    WHERE j.computing_queue_id = q.id AND j.ended_at IS NULL ORDER BY j.id LIMIT 1
) AS oldest LEFT JOIN LATERAL (
    SELECT p.last_seen AS at FROM brokerage_pilot p WHERE p.queue_id = q.id ORDER BY p.last_seen DESC LIMIT 1
) AS seen ON true
"""
"""Three probes of an index for each queue, whatever the number of jobs and pilots."""

_WAITING = """
SELECT t.computing_queue_id, t.vo, t.prod_source_label, t.gshare, t.work_queue_id, t.resource_type, count(*)
FROM brokerage_job j JOIN brokerage_taskqueue t ON t.id = j.task_queue_id
WHERE j.computing_queue_id = ANY (%s) AND j.ended_at IS NULL AND j.status = ANY (%s)
GROUP BY 1, 2, 3, 4, 5, 6
"""


class WaitingJobs(NamedTuple):
    """Jobs of a group that wait at one queue."""

    queue_id: int
    group: Group
    n: int


def queue_services(using: str = "default") -> list[QueueService]:
    """Every queue with jobs; one statement."""
    with connections[using].cursor() as cursor:
        cursor.execute(_SERVICES)
        return [
            QueueService(id_, name, status, down, catchall, json.loads(params or "null"), status_s, silent_s)
            for id_, name, status, down, catchall, params, status_s, silent_s in cursor.fetchall()
        ]


def waiting_at(queues: Sequence[int], using: str = "default") -> list[WaitingJobs]:
    """Jobs that wait at these queues; nothing is asked where there are none."""
    if not queues:
        return []
    with connections[using].cursor() as cursor:
        cursor.execute(_WAITING, [list(queues), sorted(JOB.placed)])
        return [WaitingJobs(queue, Group(*columns), n) for queue, *columns, n in cursor.fetchall()]
