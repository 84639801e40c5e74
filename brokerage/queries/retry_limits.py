"""What the limits of retries look at in the jobs of a task; nothing where no limit is set."""

from __future__ import annotations

from django.db import connection

from brokerage.states import JOB
from workqueues.models import Task
from workqueues.queries.retry_limits import limits_of, most_tries
from workqueues.rules.jobs.measured_needs import LONGEST_S
from workqueues.rules.task.retry_limits import JOB_FIGURES, RetryExcess, RetryFigures
from workqueues.rules.task.retry_limits import retry_excess as judged

_FIGURES = f"""
SELECT count(*) FILTER (WHERE done), count(*) FILTER (WHERE NOT done),
    coalesce(sum(seconds * cores * power) FILTER (WHERE done), 0) / 3600,
    coalesce(sum(seconds * cores * power) FILTER (WHERE NOT done), 0) / 3600,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY
        CASE WHEN cpu_s BETWEEN 0 AND {LONGEST_S} * cores THEN 100 * cpu_s / seconds / cores END)
        FILTER (WHERE done AND seconds > 0)
FROM (
    SELECT j.status IN ({JOB.succeeded.sql}) AS done, greatest(j.core_count, 1) AS cores,
        coalesce(q.corepower, 0)::float8 AS power,
        greatest(extract(epoch FROM r.end_time - r.start_time), 0)::float8 AS seconds,
        CASE WHEN jsonb_typeof(r.metrics->'cpu_s') = 'number' THEN (r.metrics->>'cpu_s')::float8 END AS cpu_s
    FROM brokerage_job j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
        LEFT JOIN brokerage_jobresult r ON r.job_id = j.id
    WHERE j.task_id = %s AND j.status IN ({JOB.reported.sql})
) AS ended
"""
"""Of all jobs of a task that finished or failed; what was not measured, or cannot be true, counts as no work."""


def figures_of(task: Task) -> RetryFigures:
    """What its jobs did."""
    with connection.cursor() as cursor:
        cursor.execute(_FIGURES, [task.id])
        return RetryFigures(task.attempt_nr, *(cursor.fetchone() or ()))


def retry_excess(task: Task) -> RetryExcess | None:
    """The limit beyond which the task must not be retried; None: it may be."""
    limits = limits_of(task)
    if not limits:
        return None
    figures = figures_of(task) if JOB_FIGURES & limits.keys() else RetryFigures(task.attempt_nr)
    if "JOB_MAX_ATTEMPT" in limits:
        figures = figures._replace(max_attempt=most_tries(task))
    return judged(figures, limits, task.prod_source_label)
