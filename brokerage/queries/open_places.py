"""Where open jobs may go: the task queues of such jobs with the queues of each, and how many wait for any pilot of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Q

from broker_site.foundation.sql.wildcards import named
from brokerage.models import RequirementPlace, TaskQueue

_PLACES = """
SELECT array_agg(t.id ORDER BY t.id), ARRAY(
    SELECT p.computing_queue_id FROM brokerage_requirementplace p WHERE p.requirement_set_id = t.requirement_set_id ORDER BY 1)
FROM brokerage_taskqueue t WHERE t.computing_queue_id IS NULL GROUP BY t.requirement_set_id ORDER BY 1
"""
OPEN_JOBS = """
WITH ready AS MATERIALIZED (
    SELECT t.requirement_set_id AS set_id FROM brokerage_taskqueue t
        JOIN brokerage_job j ON j.task_queue_id = t.id AND j.ready_priority IS NOT NULL
    WHERE t.computing_queue_id IS NULL AND (%(queue)s IS NULL OR t.requirement_set_id IN (
        SELECT requirement_set_id FROM brokerage_requirementplace WHERE computing_queue_id = %(queue)s))
    LIMIT %(most)s
), counted AS (
    SELECT set_id, count(*) AS n FROM ready GROUP BY 1
)
SELECT p.computing_queue_id, sum(c.n)::int FROM counted c JOIN brokerage_requirementplace p ON p.requirement_set_id = c.set_id
WHERE (%(queue)s IS NULL OR p.computing_queue_id = %(queue)s)
    AND (p.storage = '' OR EXISTS (SELECT FROM brokerage_storageendpoint e WHERE e.name = p.storage))
GROUP BY 1
"""
"""From the task queues of open jobs, by the index of what is handed out there; no other job is looked at."""
MOST_OPEN = 100_000
"""Open jobs are counted no further: beyond, numbers are lower bounds."""


class OpenTaskQueues(NamedTuple):
    """Task queues whose jobs are open to the same computing queues (ids)."""

    task_queues: Sequence[int]
    queues: Sequence[int]


def open_places() -> list[OpenTaskQueues]:
    """All of them; one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_PLACES)
        return [OpenTaskQueues(*row) for row in cursor.fetchall()]


def open_to(pattern: str, using: str = DEFAULT_DB_ALIAS) -> Q:
    """The condition that a job is open to a queue with such a name, which may have wildcards."""
    places = RequirementPlace.objects.using(using).filter(named("computing_queue__name", pattern))
    sets = places.values("requirement_set_id")
    task_queues = TaskQueue.objects.using(using).filter(computing_queue=None, requirement_set_id__in=sets)
    return Q(computing_queue=None, ended_at=None, task_queue_id__in=task_queues.values("id"))


def open_jobs_of_queues(queue: int | None = None, using: str = DEFAULT_DB_ALIAS) -> dict[int, int]:
    """How many open jobs a pilot could get now by computing queue (id), of all queues or only of this one; each counts whole at
    every queue to which it is open. One statement.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(OPEN_JOBS, {"queue": queue, "most": MOST_OPEN})
        return dict(cursor.fetchall())
