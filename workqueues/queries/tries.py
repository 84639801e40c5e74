"""Tasks with inputs that were tried often."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection

from workqueues.rules.throttle.attempts import EVERY
from workqueues.states import INPUT_FILE, MASTER_TYPES, TASK

_OFTEN = f"""
SELECT t.id, tried.most, coalesce(t.num_throttled, 0)
FROM (
    SELECT task_id, max(attempt_nr) AS most FROM workqueues_file
    WHERE attempt_nr >= {EVERY} AND status IN ({INPUT_FILE.live.sql}) AND type IN ({MASTER_TYPES.sql}) GROUP BY 1
) tried JOIN workqueues_task t ON t.id = tried.task_id
WHERE t.status IN ({TASK.working.sql}) AND tried.most / {EVERY} > coalesce(t.num_throttled, 0)
    AND NOT EXISTS (SELECT FROM workqueues_taskparams p WHERE p.task_id = t.id AND p.task_params @> '{{"noThrottle": true}}')
ORDER BY t.id
"""


class OftenTried(NamedTuple):
    """A working task. `most`: the tries of that file, of those not ended, that was tried most; `times`: throttled so often."""

    task_id: int
    most: int
    times: int


def often_tried() -> list[OftenTried]:
    """Those with more multiples of five tries than they were throttled for, unless they are never throttled for failures."""
    with connection.cursor() as cursor:
        cursor.execute(_OFTEN)
        return [OftenTried(*row) for row in cursor.fetchall()]
