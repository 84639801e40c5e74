"""Elements that wait have the priority that their task has now."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

_FOLLOW = """
UPDATE workqueues_element e SET priority = t.current_priority FROM workqueues_task t
WHERE e.task_id = t.id AND t.id = ANY(%s) AND e.status = 'Available' AND e.priority <> t.current_priority
"""


def follow_priorities(task_ids: Sequence[int]) -> int:
    """The waiting elements of these locked tasks, whose priority has just changed: how many."""
    with connection.cursor() as cursor:
        cursor.execute(_FOLLOW, [list(task_ids)])
        return cursor.rowcount
