"""Jobs of every unit, and the tasks that could get more: what the job throttler judges."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from django.db import connection

from brokerage.rules.facts.job_kind import MERGING_KINDS
from brokerage.states import COUNTED_AS
from workqueues.queries.agent_work import RESTED, STANDINGS, TURN, WORK
from workqueues.rules.throttle.throttler import Counts
from workqueues.rules.throttle.units import Group
from workqueues.states import TASK

_JOBS = """
WITH grouped AS MATERIALIZED (
    SELECT task_queue_id, status, count(*) AS n,
        max(priority) FILTER (WHERE kind <> ALL(%(merging)s)) AS top
    FROM brokerage_job WHERE ended_at IS NULL GROUP BY 1, 2
)
SELECT q.vo, q.prod_source_label, q.gshare, q.work_queue_id, q.resource_type, g.status,
    sum(g.n)::bigint, sum(g.n * q.walltime_s)::bigint, max(g.top)
FROM grouped g JOIN brokerage_taskqueue q ON q.id = g.task_queue_id GROUP BY 1, 2, 3, 4, 5, 6
"""
"""Live jobs only, so it does not grow with history. What tells jobs apart is that of their task queue; the highest priority is
that of other jobs than merging ones, which run above all others (facts on tables 4.5)."""

_TASKS = f"""
SELECT t.vo, t.prod_source_label, t.gshare, coalesce(t.work_queue_id, 0), t.resource_type, count(*), max(t.current_priority),
    dense_rank() OVER (ORDER BY {TURN})
FROM workqueues_task t {STANDINGS}
WHERE t.status IN ({TASK.generating.sql}) AND (t.locked_by = '' OR t.locked_time < now())
  AND {RESTED} AND {WORK["unused inputs"]}
GROUP BY 1, 2, 3, 4, 5, s.place, s.above, w.place, w.above, t.work_queue_id
ORDER BY 8, 7 DESC
"""

COLUMN = COUNTED_AS | {"waiting": "waiting"}
"""State of a job -> where the throttler counts it; jobs in other states neither wait nor run."""


class ClaimableTasks(NamedTuple):
    """Tasks of a group that a run could take now, the highest priority among them, and the group's turn, from 1."""

    tasks: int
    priority: int
    turn: int


def jobs_by_group() -> dict[Group, Counts]:
    """What the live jobs of each group do; one statement."""
    counts: dict[Group, Counts] = defaultdict(Counts)
    with connection.cursor() as cursor:
        cursor.execute(_JOBS, {"merging": [kind.value for kind in MERGING_KINDS]})
        for *columns, status, n, walltime, top in cursor:
            if column := COLUMN.get(status):
                waiting_s = walltime if walltime and column != "running" else None
                counts[Group(*columns)] += Counts(walltime_s=waiting_s, top_priority=top, **{column: n})
    return dict(counts)


def claimable_by_group() -> dict[Group, ClaimableTasks]:
    """Tasks that get jobs, that nobody holds and that have files to use, in the order in which they are served."""
    with connection.cursor() as cursor:
        cursor.execute(_TASKS)
        return {Group(*row[:5]): ClaimableTasks(*row[5:]) for row in cursor}
