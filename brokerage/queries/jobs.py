"""Jobs that have not ended: those of a task, and how many each queue has."""

from __future__ import annotations

from collections import defaultdict

from django.db import connection

from brokerage.models import Job
from brokerage.rules.dispatch.settlement import JobVersion


def live_jobs(task_id: int) -> list[JobVersion]:
    """Every job of the task that is in no final state, by id."""
    rows = Job.objects.filter(task_id=task_id, ended_at=None).order_by("id").values_list("id", "epoch", "status")
    return [JobVersion(*row) for row in rows]


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
