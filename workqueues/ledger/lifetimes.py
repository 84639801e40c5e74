"""How long datasets are kept that a task calls transient: from its good end on. What is over is removed by `brokerage`."""

from __future__ import annotations

from django.db import connection

from workqueues.states import WRITTEN_TYPES

_LIMIT = f"""
UPDATE workqueues_cataloguedataset c SET expires_at = now() + make_interval(secs => %s)
WHERE c.id IN (
    SELECT c.id FROM workqueues_dataset d JOIN workqueues_cataloguedataset c ON c.name = d.dataset_name AND c.vo = d.vo
    WHERE d.task_id = %s AND d.type IN ({WRITTEN_TYPES.sql}) AND 'tr=1' = ANY (string_to_array(d.attributes, ','))
    ORDER BY c.id FOR NO KEY UPDATE OF c)
"""


def limit_lifetimes(task_id: int, seconds: float) -> int:
    """The transient datasets of the task are kept for so long from now on: how many. Files that come later make that void."""
    with connection.cursor() as cursor:
        cursor.execute(_LIMIT, [seconds, task_id])
        return int(cursor.rowcount)
