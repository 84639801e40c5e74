"""Queues with jobs as they serve them, and the jobs that wait where they cannot start (decisions C7, D18)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from django.db import connections

from brokerage.rules.dispatch.stranding import QueueService
from brokerage.states import JOB
from workqueues.rules.throttle.units import Group

_SERVICES = """
WITH open_at AS MATERIALIZED (
    SELECT p.computing_queue_id AS queue, min(w.since) AS since FROM (
        SELECT t.requirement_set_id, min(best.since) AS since FROM brokerage_taskqueue t CROSS JOIN LATERAL (
            SELECT status_since AS since FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL
            ORDER BY ready_priority, id LIMIT 1) AS best
        WHERE t.computing_queue_id IS NULL GROUP BY 1
    ) AS w JOIN brokerage_requirementplace p ON p.requirement_set_id = w.requirement_set_id GROUP BY 1
)
SELECT q.id, q.name, q.status, EXISTS (
        SELECT FROM brokerage_queuestorage w WHERE w.queue_id = q.id AND w.access LIKE 'write\\_%%'
    ) AND NOT EXISTS (
        SELECT FROM brokerage_queuestorage w JOIN brokerage_storageendpoint s ON s.name = w.storage_id
        WHERE w.queue_id = q.id AND w.access LIKE 'write\\_%%' AND s.root_state <> 'down'
    ), q.catchall, q.attributes -> 'params', extract(epoch FROM now() - q.status_since)::float8,
    CASE WHEN q.submission <> 'none' THEN 0
        ELSE extract(epoch FROM now() - coalesce(seen.at, oldest.since, open_at.since))::float8 END
FROM brokerage_computingqueue q LEFT JOIN open_at ON open_at.queue = q.id LEFT JOIN LATERAL (
    SELECT j.status_since AS since FROM brokerage_job j
    WHERE j.computing_queue_id = q.id AND j.ended_at IS NULL ORDER BY j.id LIMIT 1
) AS oldest ON true LEFT JOIN LATERAL (
    SELECT p.last_seen AS at FROM brokerage_pilot p WHERE p.queue_id = q.id ORDER BY p.last_seen DESC LIMIT 1
) AS seen ON true
WHERE coalesce(oldest.since, open_at.since) IS NOT NULL
"""
"""Three probes of an index for each queue, and one for each task queue of open jobs, whatever the number of jobs and pilots."""

_OPEN_TASK_QUEUES = """
SELECT t.id, ARRAY(
    SELECT p.computing_queue_id FROM brokerage_requirementplace p
    WHERE p.requirement_set_id = t.requirement_set_id AND (p.storage = '' OR EXISTS (
        SELECT FROM brokerage_storageendpoint e WHERE e.name = p.storage)))
FROM brokerage_taskqueue t
WHERE t.computing_queue_id IS NULL AND EXISTS (
    SELECT FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL)
ORDER BY t.id
"""

_WAITING = """
SELECT t.computing_queue_id, t.vo, t.prod_source_label, t.gshare, t.work_queue_id, t.resource_type, count(*)
FROM brokerage_job j JOIN brokerage_taskqueue t ON t.id = j.task_queue_id
WHERE j.computing_queue_id = ANY (%s) AND j.ended_at IS NULL AND j.status = ANY (%s)
GROUP BY 1, 2, 3, 4, 5, 6
"""
_WAITING_IN = """
SELECT t.vo, t.prod_source_label, t.gshare, t.work_queue_id, t.resource_type, count(*)
FROM brokerage_job j JOIN brokerage_taskqueue t ON t.id = j.task_queue_id
WHERE j.task_queue_id = ANY (%s) AND j.ready_priority IS NOT NULL
GROUP BY 1, 2, 3, 4, 5
"""


class WaitingJobs(NamedTuple):
    """Jobs of a group that wait, at one queue where that is told."""

    queue_id: int | None
    group: Group
    n: int


def queue_services(using: str = "default") -> list[QueueService]:
    """Every queue with jobs, or to which some are open; one statement."""
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


def stranded_task_queues(without: Collection[int], using: str = "default") -> list[int]:
    """Task queues of open jobs that wait, all of whose queues are among these, or have no storage for their outputs any more."""
    with connections[using].cursor() as cursor:
        cursor.execute(_OPEN_TASK_QUEUES)
        return [id_ for id_, places in cursor.fetchall() if all(place in without for place in places)]


def waiting_in(task_queues: Sequence[int], using: str = "default") -> list[WaitingJobs]:
    """Jobs that wait in these task queues, which are open or at one queue each; nothing is asked where there are none."""
    if not task_queues:
        return []
    with connections[using].cursor() as cursor:
        cursor.execute(_WAITING_IN, [list(task_queues)])
        return [WaitingJobs(None, Group(*columns), n) for *columns, n in cursor.fetchall()]
