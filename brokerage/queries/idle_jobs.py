"""Jobs of users that wait at queues, by task, with since when, and whether others of the task got on there lately."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection

from brokerage.rules.facts.job_kind import MERGING_KINDS
from brokerage.states import JOB
from workqueues.rules.jobs.activity import ANALYSIS_LABELS

_IDLE = f"""
WITH waiting AS MATERIALIZED (
    SELECT computing_queue_id AS queue_id, task_id, min(status_since) FILTER (WHERE status = 'activated') AS ready,
        max(status_since) FILTER (WHERE status <> 'activated') AS made
    FROM brokerage_job WHERE ended_at IS NULL AND status IN ({JOB.placed.sql}) AND kind <> ALL (%(merging)s) GROUP BY 1, 2
)
SELECT w.queue_id, w.task_id, extract(epoch FROM now() - coalesce(w.ready, w.made))::float8, q.name, q.status, t.vo,
    t.working_group, EXISTS (
        SELECT FROM brokerage_job j WHERE j.task_id = w.task_id AND j.computing_queue_id = w.queue_id AND j.ended_at IS NULL
            AND j.status IN ({JOB.begun.sql}) AND j.status_since > now() - make_interval(secs => %(quiet)s)
    ) OR EXISTS (
        SELECT FROM brokerage_job j WHERE j.task_id = w.task_id AND j.computing_queue_id = w.queue_id
            AND j.ended_at > now() - make_interval(secs => %(quiet)s) AND j.status IN ({JOB.got_on.sql}))
FROM waiting w JOIN workqueues_task t ON t.id = w.task_id JOIN brokerage_computingqueue q ON q.id = w.queue_id
WHERE coalesce(w.ready, w.made) < now() - make_interval(secs => %(quiet)s) AND t.prod_source_label = ANY (%(labels)s)
ORDER BY w.queue_id, w.task_id
"""


class IdleJobs(NamedTuple):
    """Jobs of a task that wait at one queue. `waits_s`: since the first could have begun; `moved`: others got on there lately."""

    queue_id: int
    task_id: int
    waits_s: float
    queue: str
    status: str
    vo: str
    group: str
    moved: bool


def idle_jobs(quiet_s: float) -> list[IdleJobs]:
    """Those that have waited for so long; `quiet_s` is also what lately means."""
    merging, labels = [kind.value for kind in MERGING_KINDS], list(ANALYSIS_LABELS)
    with connection.cursor() as cursor:
        cursor.execute(_IDLE, {"quiet": quiet_s, "labels": labels, "merging": merging})
        return [IdleJobs(*row) for row in cursor.fetchall()]
