"""Task queues in which no job waits any more are removed, with their requirement sets (facts on matching a8)."""

from __future__ import annotations

from django.db import connection, transaction

from brokerage.models import RequirementSet

_STILL_USED = """
UPDATE brokerage_taskqueue SET used_at = now() WHERE id IN (
    SELECT t.id FROM brokerage_taskqueue t
    WHERE t.used_at < now() - make_interval(secs => %(empty_s)s / 5)
        AND EXISTS (SELECT FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL)
    ORDER BY t.id FOR NO KEY UPDATE SKIP LOCKED)
"""
"""So the time counts from when the last job left, not from when one came, to a fifth of it."""
_OLD = """
SELECT t.id FROM brokerage_taskqueue t
WHERE t.used_at < now() - make_interval(secs => %(empty_s)s)
    AND NOT EXISTS (SELECT FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL)
    AND NOT EXISTS (SELECT FROM brokerage_jobopening o WHERE o.task_queue_id = t.id)
ORDER BY t.used_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""
_NAMED = """
WITH old AS MATERIALIZED (
    SELECT id, computing_queue_id, requirement_set_id FROM brokerage_taskqueue WHERE id = ANY (%(ids)s)
), place AS MATERIALIZED (
    SELECT computing_queue_id FROM old WHERE computing_queue_id IS NOT NULL
    UNION
    SELECT p.computing_queue_id FROM old JOIN brokerage_requirementplace p ON p.requirement_set_id = old.requirement_set_id
    WHERE old.computing_queue_id IS NULL
)
SELECT DISTINCT task_queue_id FROM brokerage_job
WHERE ended_at IS NULL AND task_queue_id = ANY (%(ids)s)
    AND (computing_queue_id IS NULL OR computing_queue_id IN (SELECT computing_queue_id FROM place))
UNION SELECT task_queue_id FROM brokerage_jobopening WHERE task_queue_id = ANY (%(ids)s)
"""
"""Those that a live job names: it may be ready soon, and shares and throttler know by its task queue whose it is; and those where
a job is to wait later.
"""
_PUT_OFF = "UPDATE brokerage_taskqueue SET used_at = now() WHERE id = ANY (%s)"
_REMOVE = "DELETE FROM brokerage_taskqueue WHERE id = ANY (%s)"
_SETS = """
SELECT s.id FROM brokerage_requirementset s WHERE s.used_at < now() - make_interval(secs => %(empty_s)s)
    AND NOT EXISTS (SELECT FROM brokerage_taskqueue t WHERE t.requirement_set_id = s.id)
ORDER BY s.id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""


def remove_empty_task_queues(limit: int, empty_s: float) -> int:
    """Remove at most `limit` task queues in which no job has waited for `empty_s` seconds, and which no live job names: how many.

    They are locked first, and whoever puts jobs into task queues locks these: none gets a job meanwhile.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_STILL_USED, {"empty_s": empty_s})
    removed = _remove(limit, empty_s)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_SETS, {"empty_s": empty_s, "limit": limit})
            sets = [id_ for (id_,) in cursor.fetchall()]
        RequirementSet.objects.filter(id__in=sets).delete()
    return removed


def _remove(limit: int, empty_s: float) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_OLD, {"empty_s": empty_s, "limit": limit})
        ids = [id_ for (id_,) in cursor.fetchall()]
        if not ids:
            return 0
        cursor.execute(_NAMED, {"ids": ids})  # a statement of its own: it sees what was committed before the locks
        named = {id_ for (id_,) in cursor.fetchall()}
        cursor.execute(_PUT_OFF, [list(named)])  # they do not keep others from their turn
        cursor.execute(_REMOVE, [[id_ for id_ in ids if id_ not in named]])
        return int(cursor.rowcount)
