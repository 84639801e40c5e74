"""Waiting elements of tasks that give no work for now (paused, throttled) stand aside, so that no pull looks at them."""

from __future__ import annotations

from django.db import connection

from workqueues.states import TASK

_FOLLOW = f"""
WITH turned AS MATERIALIZED (
    SELECT e.id FROM workqueues_task t CROSS JOIN LATERAL (
        SELECT e.id FROM workqueues_element e
        WHERE e.task_id = t.id AND e.status = 'Available' AND e.is_aside = (t.status IN ({TASK.generating.sql})) LIMIT %(most)s) e
    WHERE t.ended_at IS NULL AND t.work_to <> 'own' LIMIT %(most)s
), locked AS (
    SELECT e.id FROM workqueues_element e WHERE e.id IN (SELECT id FROM turned) AND e.status = 'Available'
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE workqueues_element e SET is_aside = NOT is_aside FROM locked WHERE e.id = locked.id
"""


def follow_tasks(most: int) -> int:
    """Waiting elements stand aside whose tasks give no work now, and those stand with the others again whose tasks do: how many,
    `most` at a time.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FOLLOW, {"most": most})
        return cursor.rowcount
