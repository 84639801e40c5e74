"""With what the jobs of a task ended that did not finish: by error code, with the commonest text of each."""

from __future__ import annotations

import json

from django.db import connections

from brokerage.rules.dispatch.retry_rules import NO_RETRY
from brokerage.rules.explain.task_status_text import ErrorGroup, JobErrors
from brokerage.states import JOB

MOST_ENDED, MOST_FAILED, MOST_CODES = 20_000, 2_000, 10
"""The newest ended jobs that are looked at, those of them without success that are read, and the codes that are told."""


def job_errors(task_id: int, using: str = "default") -> JobErrors:
    """Errors of the newest jobs that ended, the most frequent first; one bounded statement. Cancelled jobs had none."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"""
            WITH ended AS MATERIALIZED (
                SELECT id, status FROM brokerage_job WHERE task_id = %(task)s AND ended_at IS NOT NULL
                ORDER BY ended_at DESC LIMIT %(ended)s
            ), failed AS (SELECT id FROM ended WHERE status IN ({JOB.unsuccessful.sql}) LIMIT %(failed)s)
            SELECT r.error_code, count(*), mode() WITHIN GROUP (ORDER BY split_part(r.error_message, E'\\n', 1)), max(r.job_id),
                count(*) FILTER (WHERE r.retry_actions @> %(no_retry)s::jsonb), (SELECT count(*) FROM ended)
            FROM failed JOIN brokerage_jobresult r ON r.job_id = failed.id WHERE r.error_code <> ''
            GROUP BY r.error_code ORDER BY count(*) DESC, r.error_code LIMIT %(codes)s
            """,
            {
                "task": task_id,
                "ended": MOST_ENDED,
                "failed": MOST_FAILED,
                "codes": MOST_CODES,
                "no_retry": json.dumps([{"action": NO_RETRY}]),
            },
        )
        rows = cursor.fetchall()
    return JobErrors(tuple(ErrorGroup(*row[:5]) for row in rows), rows[0][5] if rows else 0)
