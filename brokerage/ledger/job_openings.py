"""Jobs that were bound to a queue early and are open to others once they have waited there (row X4, decision H7).

Which jobs these are, and when, is noted when they are made, in rows that go as soon as they are due: what looks for them reads
an index of those alone, however many jobs there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from django.db import connection, transaction

from brokerage.ledger.ready_jobs import tell_of_jobs
from brokerage.ledger.task_queues import locked_task_queues
from brokerage.states import JOB

_NOTE = """
INSERT INTO brokerage_jobopening (job_id, task_queue_id, due)
SELECT id, task_queue, now() + make_interval(secs => %s) FROM unnest(%s::bigint[], %s::int[]) AS o(id, task_queue)
"""
_DUE = """
SELECT job_id, task_queue_id FROM brokerage_jobopening WHERE due <= now() ORDER BY due, job_id LIMIT %s
FOR UPDATE SKIP LOCKED
"""
_WAITING = f"""
SELECT id FROM brokerage_job WHERE id = ANY (%s) AND ended_at IS NULL AND status IN ({JOB.ready_or_held.sql})
    AND computing_queue_id IS NOT NULL AND lease_holder IS NULL
"""
_LOCK_WAITING = f"{_WAITING} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED"
_OPEN = """
WITH opened AS (
    UPDATE brokerage_job j SET task_queue_id = o.task_queue, computing_queue_id = NULL, storage = ''
    FROM unnest(%(jobs)s::bigint[], %(task_queues)s::int[]) AS o(job_id, task_queue), brokerage_job before
        JOIN brokerage_computingqueue q ON q.id = before.computing_queue_id
    WHERE j.id = o.job_id AND before.id = j.id
    RETURNING j.id, j.status, j.epoch, q.name, o.task_queue
)
INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who, why)
SELECT id, status, status, epoch, %(who)s, 'no pilot of ' || name || ' took it in time: open to any of ' || (
    SELECT count(*) FROM brokerage_requirementplace p JOIN brokerage_taskqueue t ON t.requirement_set_id = p.requirement_set_id
    WHERE t.id = task_queue) || ' queues'
FROM opened
"""
_FORGET = "DELETE FROM brokerage_jobopening WHERE job_id = ANY (%s)"


def note_openings(task_queues: Mapping[int, int], after_s: int) -> None:
    """Jobs that are being made are to be open in so many seconds: job -> the task queue in which it is to wait then."""
    if task_queues:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE, [after_s, list(task_queues), list(task_queues.values())])


def open_due(limit: int, who: str) -> int:
    """Open the jobs for which it is time and that still wait for a pilot, at most so many: how many were looked at.

    One that somebody has just now is looked at again in the next run.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_DUE, [limit])
        due = dict(cursor.fetchall())
        if not due:
            return 0
        cursor.execute(_LOCK_WAITING, [list(due)])
        mine = {id_ for (id_,) in cursor.fetchall()}
        cursor.execute(_WAITING, [list(due.keys() - mine)])
        locked = {id_ for (id_,) in cursor.fetchall()}
        there = locked_task_queues({due[id_] for id_ in mine})
        queues = {id_: due[id_] for id_ in sorted(mine) if due[id_] in there}
        cursor.execute(_OPEN, {"jobs": list(queues), "task_queues": list(queues.values()), "who": who})
        cursor.execute(_FORGET, [[id_ for id_ in due if id_ not in locked]])
        tell_of_jobs(Counter((None, queue) for queue in queues.values()))
    return len(due) - len(locked)
