"""Where jobs of shares wait and run, and those of them that leave a queue by fast rebrokerage (decision D3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import connection

from brokerage.models.job import TO_REASSIGN
from brokerage.queries.movable_jobs import MOVABLE
from brokerage.rules.dispatch.fast_rebrokerage import BEGINNING, QUEUED, Move, ShareAtQueue
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.dispatch.timeouts import QueueFacts, suspended
from brokerage.states import COUNTED_AS
from workqueues.rules.throttle.units import RESOURCE

_QUEUED = ", ".join(f"'{state}'" for state in sorted(s for s, counted in COUNTED_AS.items() if counted in QUEUED))
_RESOURCE = f"SELECT id FROM workqueues_workqueue WHERE queue_function = '{RESOURCE}'"
_PLACES = f"""
WITH live AS MATERIALIZED (
    SELECT computing_queue_id AS queue_id, task_id, count(*) FILTER (WHERE status IN ({_QUEUED})) AS queued,
        count(*) FILTER (WHERE status = 'running') AS running
    FROM brokerage_job WHERE ended_at IS NULL AND computing_queue_id IS NOT NULL GROUP BY 1, 2
)
SELECT q.id, q.name, t.vo, t.gshare, sum(l.queued)::int, sum(l.running)::int, EXISTS (
        SELECT FROM brokerage_declaredslots s WHERE s.queue_id = q.id AND s.n >= 0 AND (s.expires IS NULL OR s.expires > now())
    ), q.status, q.catchall
FROM live l JOIN brokerage_computingqueue q ON q.id = l.queue_id CROSS JOIN LATERAL (
    SELECT vo, gshare, work_queue_id FROM workqueues_task WHERE id = l.task_id LIMIT 1) AS t
WHERE coalesce(t.work_queue_id, 0) NOT IN ({_RESOURCE})
GROUP BY q.id, t.vo, t.gshare ORDER BY q.id, t.vo, t.gshare
"""
"""The tasks of live jobs are read one by one from their index: a join would read all that there ever were."""
_LEAVING = f"""
SELECT j.id, j.epoch, j.status, j.task_id
FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id
WHERE j.computing_queue_id = %(queue)s AND j.ended_at IS NULL AND t.vo = %(vo)s AND t.gshare = %(share)s
    AND coalesce(t.work_queue_id, 0) NOT IN ({_RESOURCE}) AND j.status = ANY (%(states)s) AND j.kind <> ALL (%(merging)s)
    AND j.task_id = ANY (%(tasks)s) AND j.status_since < now() - make_interval(secs => %(age)s) AND NOT EXISTS (
        SELECT FROM unnest(%(tasks)s::bigint[]) AS near(task)
            JOIN brokerage_job gone ON gone.task_id = near.task AND gone.ended_at > now() - make_interval(secs => %(age)s)
            JOIN workqueues_task was ON was.id = near.task JOIN brokerage_jobresult r ON r.job_id = gone.id
        WHERE gone.computing_queue_id = %(queue)s AND gone.sub_status = '{TO_REASSIGN}' AND was.vo = %(vo)s
            AND was.gshare = %(share)s AND r.error_message LIKE '{BEGINNING}%%')
ORDER BY j.id LIMIT %(n)s
"""
"""After jobs have left, also by a run beside this one, what waits is not judged again before those that are made anew can have
found their queues: until then they count nowhere, and too many would leave.
"""


def shares_at_queues(shares: Collection[tuple[str, str]]) -> list[ShareAtQueue]:
    """Jobs of these shares, each with its VO, at every queue to which they are bound; nothing is asked where there are none."""
    if not shares:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_PLACES)
        return [
            ShareAtQueue(id_, queue, vo, share, queued, running, slots, suspended(QueueFacts(status, catchall)))
            for id_, queue, vo, share, queued, running, slots, status, catchall in cursor.fetchall()
            if (vo, share) in shares
        ]


def jobs_leaving(move: Move, tasks: Sequence[int], age_s: float) -> list[JobVersion]:
    """The jobs that leave: of these tasks, the lowest ids that have stood as they do for so long, no merge jobs."""
    values = {**MOVABLE, "states": sorted(QUEUED), "queue": move.queue_id, "vo": move.vo, "share": move.share}
    with connection.cursor() as cursor:
        cursor.execute(_LEAVING, {**values, "n": move.n, "tasks": list(tasks), "age": age_s})
        return [JobVersion(*row) for row in cursor.fetchall()]
