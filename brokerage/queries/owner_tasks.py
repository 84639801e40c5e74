"""Tasks for whose owners too much input is on the way."""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection

from brokerage.rules.transfers.owner_limits import CAUSES

_TASKS = """
SELECT o.vo, o.owner, w.task_id, bool_or(w.role = 'input'), bool_or(w.role = 'stage')
FROM unnest(%(vos)s::text[], %(owners)s::text[]) AS o(vo, owner)
    JOIN brokerage_transferwish w ON w.vo = o.vo AND w.owner = o.owner AND w.closed_at IS NULL AND w.role IN ('input', 'stage')
WHERE w.task_id IS NOT NULL GROUP BY 1, 2, 3
UNION ALL
SELECT t.vo, CASE t.working_group WHEN '' THEN t.user_name ELSE 'group:' || t.working_group END, h.task_id,
    h.cause = 'disk_transfers', h.cause = 'tape_staging'
FROM workqueues_taskthrottle h JOIN workqueues_task t ON t.id = h.task_id
WHERE h.cause = ANY(%(causes)s) AND t.status = 'throttled'
"""


def tasks_that_move(owners: Collection[tuple[str, str]]) -> list[tuple[tuple[str, str], int, bool, bool]]:
    """Tasks of these (VO, owner) that have input brought from disk, or from tape; those too that are throttled for it already,
    whoever's they are.
    """
    with connection.cursor() as cursor:
        values = {"vos": [vo for vo, _ in owners], "owners": [owner for _, owner in owners], "causes": list(CAUSES)}
        cursor.execute(_TASKS, values)
        return [((vo, owner), task_id, disk, tape) for vo, owner, task_id, disk, tape in cursor.fetchall()]
