"""Tasks that have not ended by VO and state, counted anew at each run of the agent tally: pages need not group them."""

from __future__ import annotations

from django.db import connection

from workqueues.states import TASK

COUNT = f"""
WITH facts AS MATERIALIZED (
    SELECT vo, status, count(*) AS n FROM workqueues_task WHERE status IN ({TASK.live.sql}) GROUP BY 1, 2
), gone AS (
    DELETE FROM brokerage_tasklevel l WHERE NOT EXISTS (SELECT FROM facts f WHERE f.vo = l.vo AND f.status = l.status)
)
INSERT INTO brokerage_tasklevel (vo, status, n) SELECT vo, status, n FROM facts
ON CONFLICT (vo, status) DO UPDATE SET n = EXCLUDED.n WHERE brokerage_tasklevel.n <> EXCLUDED.n
"""


def count_tasks() -> None:
    """Count them; to be called by who holds the mark."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT)
