"""What a task that does not move waits for: held files, live jobs and pilots at their queues."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Min

from monitoring.queries.database import alias, rows
from monitoring.queries.queues import PILOT_SEEN_MIN
from workqueues.models import File

MOST_QUEUES = 20


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """Ready input files that are not given to jobs, with one of the reasons."""

    n: int
    example: str


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """Live jobs of a task at one queue, and the pilots that asked there in the last minutes."""

    queue: str
    status: str
    waiting: int
    held: int
    pilots: int


def held_files(task_id: int) -> HeldFiles:
    """Files of the task with a reason to be held back."""
    held = File.objects.using(alias()).filter(task_id=task_id).exclude(held="").aggregate(n=Count("id"), example=Min("held"))
    return HeldFiles(held["n"], held["example"] or "")


def queue_loads(task_id: int) -> list[QueueLoad]:
    """Where the live jobs of the task are, most waiting first."""
    found = rows(
        """
        SELECT q.name, q.status, j.waiting, j.held,
               (SELECT count(*) FROM brokerage_pilot p
                WHERE p.queue_id = q.id AND p.last_seen > now() - make_interval(mins => %(minutes)s))
        FROM (
            SELECT computing_queue_id, count(*) FILTER (WHERE lease_holder IS NULL) AS waiting, count(lease_holder) AS held
            FROM brokerage_job WHERE task_id = %(task)s AND ended_at IS NULL GROUP BY computing_queue_id
        ) AS j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
        ORDER BY j.waiting DESC, q.name LIMIT %(most)s
        """,
        {"task": task_id, "minutes": PILOT_SEEN_MIN, "most": MOST_QUEUES},
    )
    return [QueueLoad(*row) for row in found]
