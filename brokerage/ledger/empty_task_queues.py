"""Task queues in which no job waits any more are removed, with their requirement sets (facts on matching a8)."""

from __future__ import annotations

from django.db import connection, transaction

from brokerage.models import RequirementSet
from brokerage.states import JOB

EMPTY_S = 300.0
"""How long a task queue stays in which no job waits."""

_OLD = """
SELECT t.id FROM brokerage_taskqueue t
WHERE t.used_at < now() - make_interval(secs => %(empty_s)s)
    AND NOT EXISTS (SELECT FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL)
    AND NOT EXISTS (SELECT FROM brokerage_jobopening o WHERE o.task_queue_id = t.id)
ORDER BY t.id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""
_USED = """
SELECT DISTINCT task_queue_id FROM brokerage_job
WHERE ended_at IS NULL AND status = ANY (%(waiting)s) AND task_queue_id = ANY (%(ids)s)
    AND (computing_queue_id IS NULL OR computing_queue_id IN (
        SELECT computing_queue_id FROM brokerage_taskqueue WHERE id = ANY (%(ids)s)))
"""
_REMOVE = "DELETE FROM brokerage_taskqueue WHERE id = ANY (%s)"
_SETS = """
SELECT s.id FROM brokerage_requirementset s WHERE s.used_at < now() - make_interval(secs => %(empty_s)s)
    AND NOT EXISTS (SELECT FROM brokerage_taskqueue t WHERE t.requirement_set_id = s.id)
ORDER BY s.id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""


def remove_empty_task_queues(limit: int, empty_s: float = EMPTY_S) -> int:
    """Remove task queues that nobody used for `empty_s` and in which no job waits, also none that will be ready: how many.

    They are locked first, and whoever makes jobs locks the task queues of these: none gets a job meanwhile.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_OLD, {"empty_s": empty_s, "limit": limit})
        ids = [id_ for (id_,) in cursor.fetchall()]
        if ids:
            cursor.execute(_USED, {"ids": ids, "waiting": sorted(JOB.waiting)})
            used = {id_ for (id_,) in cursor.fetchall()}
            cursor.execute(_REMOVE, [[id_ for id_ in ids if id_ not in used]])
            removed = int(cursor.rowcount)
        else:
            removed = 0
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_SETS, {"empty_s": empty_s, "limit": limit})
            sets = [id_ for (id_,) in cursor.fetchall()]
        RequirementSet.objects.filter(id__in=sets).delete()
    return removed
