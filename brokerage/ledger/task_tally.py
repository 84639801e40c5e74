"""Tasks that have not ended by VO and state, counted anew at each run of the agent tally: pages need not group them."""

from __future__ import annotations

from django.db import connection

from workqueues.states import TASK

COUNT = f"""
WITH facts AS MATERIALIZED (
    SELECT vo, status AS state, count(*) AS n FROM workqueues_task WHERE status IN ({TASK.live.sql}) GROUP BY 1, 2
), gone AS (
    DELETE FROM brokerage_tasklevel l WHERE NOT EXISTS (SELECT FROM facts f WHERE f.vo = l.vo AND f.state = l.state)
)
INSERT INTO brokerage_tasklevel (vo, state, n) SELECT vo, state, n FROM facts
ON CONFLICT (vo, state) DO UPDATE SET n = EXCLUDED.n WHERE brokerage_tasklevel.n <> EXCLUDED.n
"""


def count_tasks() -> None:
    """Count them; to be called by who holds the mark."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT)
