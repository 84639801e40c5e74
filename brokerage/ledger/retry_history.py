"""Which job came after which, and why (facts on commands and retry 3.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from django.db import connection

from brokerage.models.job import REBROKER_RELATION, RETRY_RELATION, TO_REASSIGN


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


_FOLLOWERS = f"""
INSERT INTO brokerage_jobretryhistory (task_id, old_job_id, new_job_id, origin_job_id, relation_type)
SELECT %(task)s, v.old, v.new, COALESCE(
    (SELECT min(h.origin_job_id) FROM brokerage_jobretryhistory h WHERE h.new_job_id = v.old), v.old),
    CASE WHEN %(relation)s = '{RETRY_RELATION}' AND EXISTS (
        SELECT FROM brokerage_job j WHERE j.id = v.old AND j.status = 'closed' AND j.sub_status = '{TO_REASSIGN}'
    ) THEN '{REBROKER_RELATION}' ELSE %(relation)s END
FROM unnest(%(old)s::bigint[], %(new)s::bigint[]) AS v(old, new) ON CONFLICT DO NOTHING
"""


def record_followers(task_id: int, pairs: Iterable[tuple[int, int]], relation: str) -> None:
    """Old job -> new job, for each of these pairs of a task. The origin is the smallest one of the old job, else this job.

    A retry of a job that was closed to be brokered anew is told apart from one of a job that ended by itself.
    """
    ordered = sorted(set(pairs))
    if not ordered:
        return
    old, new = ([pair[side] for pair in ordered] for side in (0, 1))
    with connection.cursor() as cursor:
        cursor.execute(_FOLLOWERS, {"task": task_id, "relation": relation, "old": old, "new": new})
