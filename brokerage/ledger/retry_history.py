"""Which job came after which, and why (facts on commands and retry 3.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from django.db import connection


def origins(previous: Mapping[int, Collection[int]]) -> dict[int, int]:
    """New job -> the job with which its tries began, by which it is called: the smallest origin of those that had its input
    before (`previous`); left out where nobody had.
    """
    old = sorted({id_ for ids in previous.values() for id_ in ids})
    if not old:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT new_job_id, min(origin_job_id) FROM brokerage_jobretryhistory WHERE new_job_id = ANY (%s) GROUP BY 1", [old]
        )
        known = dict(cursor.fetchall())
    return {new: min(known.get(id_, id_) for id_ in ids) for new, ids in previous.items() if ids}


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
