"""Where open jobs may go: the task queues of such jobs with the queues of each, and how many wait for any pilot of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, connections

_PLACES = """
SELECT array_agg(t.id ORDER BY t.id), ARRAY(
    SELECT p.computing_queue_id FROM brokerage_requirementplace p WHERE p.requirement_set_id = t.requirement_set_id ORDER BY 1)
FROM brokerage_taskqueue t WHERE t.computing_queue_id IS NULL GROUP BY t.requirement_set_id ORDER BY 1
"""
_WAITING = """
WITH open AS MATERIALIZED (
    SELECT t.requirement_set_id, sum(waiting.n)::int AS n FROM brokerage_taskqueue t CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM (
            SELECT FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL LIMIT %(most)s) AS ready
    ) AS waiting
    WHERE t.computing_queue_id IS NULL AND (%(queue)s IS NULL OR t.requirement_set_id IN (
        SELECT requirement_set_id FROM brokerage_requirementplace WHERE computing_queue_id = %(queue)s))
    GROUP BY 1
)
SELECT p.computing_queue_id, sum(open.n)::int FROM open JOIN brokerage_requirementplace p USING (requirement_set_id)
WHERE open.n > 0 AND (%(queue)s IS NULL OR p.computing_queue_id = %(queue)s)
    AND (p.storage = '' OR EXISTS (SELECT FROM brokerage_storageendpoint e WHERE e.name = p.storage))
GROUP BY 1
"""
"""By the index of jobs that are handed out, of each task queue of open jobs at most so many."""
MOST = 10_000
"""Open jobs of one task queue are counted no further."""


class OpenTaskQueues(NamedTuple):
    """Task queues whose jobs are open to the same computing queues (ids)."""

    task_queues: Sequence[int]
    queues: Sequence[int]


def open_places() -> list[OpenTaskQueues]:
    """All of them; one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_PLACES)
        return [OpenTaskQueues(*row) for row in cursor.fetchall()]


def open_jobs_of_queues(queue: int | None = None, using: str = DEFAULT_DB_ALIAS) -> dict[int, int]:
    """How many open jobs a pilot could get now by computing queue (id), of all queues or only of this one; each counts whole at
    every queue to which it is open. One statement.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(_WAITING, {"queue": queue, "most": MOST})
        return dict(cursor.fetchall())
