"""Which job came after which, and why (facts on commands and retry 3.1)."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection


def record_followers(task_id: int, pairs: Iterable[tuple[int, int]], relation: str) -> None:
    """Old job -> new job, for each of these pairs of a task. The origin is the smallest one of the old job, else this job."""
    ordered = sorted(set(pairs))
    if not ordered:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO brokerage_jobretryhistory (task_id, old_job_id, new_job_id, origin_job_id, relation_type)
            SELECT %s, v.old, v.new, COALESCE(
                (SELECT min(h.origin_job_id) FROM brokerage_jobretryhistory h WHERE h.new_job_id = v.old), v.old), %s
            FROM unnest(%s::bigint[], %s::bigint[]) AS v(old, new) ON CONFLICT DO NOTHING
            """,
            [task_id, relation, [old for old, _ in ordered], [new for _, new in ordered]],
        )
