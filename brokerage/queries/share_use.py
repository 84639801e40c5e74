"""What the shares and work queues of a VO have: jobs that hold a slot and jobs that wait for one, in HS06, jobs and cores."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from django.db import connection

from brokerage.rules.facts.snapshot import CORE_POWER
from brokerage.states import JOB
from workqueues.rules.shares.usage import NOTHING, Use

HS06 = f"sum(j.core_count * CASE WHEN q.corepower > 0 THEN q.corepower ELSE {CORE_POWER} END)::float8"
"""What jobs j at computing queues q hold; a job without a queue yet counts as at one of which no power is known."""
_USE = f"""
SELECT t.vo, t.gshare, coalesce(t.work_queue_id, 0), j.status = 'activated', count(*), sum(j.core_count)::bigint, {HS06}
FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id
    LEFT JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
WHERE j.ended_at IS NULL AND j.status IN ({JOB.leased.sql}, 'activated')
GROUP BY 1, 2, 3, 4
"""
_RUNNING = f"""
SELECT t.vo, t.gshare, coalesce(t.work_queue_id, 0), {HS06}
FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id
    LEFT JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
WHERE j.lease_holder IS NOT NULL AND j.status IN ({JOB.leased.sql})
GROUP BY 1, 2, 3
"""


class ShareUse(NamedTuple):
    """VO -> share, and VO -> id of a work queue -> what it has."""

    shares: dict[str, dict[str, Use]]
    queues: dict[str, dict[int, Use]]


def running_now() -> dict[tuple[str, str, int], float]:
    """VO, share and work queue -> HS06 that its jobs run; one statement over jobs that a pilot has."""
    with connection.cursor() as cursor:
        cursor.execute(_RUNNING)
        return {(vo, share, queue): hs06 for vo, share, queue, hs06 in cursor}


def share_use() -> ShareUse:
    """What all shares and work queues have; one statement."""
    totals = ShareUse(defaultdict(dict), defaultdict(dict))
    with connection.cursor() as cursor:
        cursor.execute(_USE)
        for vo, share, queue, queued, jobs, cores, hs06 in cursor:
            use = Use(0, hs06, 0, jobs, 0, cores) if queued else Use(hs06, 0, jobs, 0, cores, 0)
            totals.shares[vo][share] = totals.shares[vo].get(share, NOTHING) + use
            totals.queues[vo][queue] = totals.queues[vo].get(queue, NOTHING) + use
    return totals
