"""Jobs of paused tasks: those that wait are held back until their task is resumed, then they are handed out again.

A job is held back only while its task is paused, which is looked at under a lock that a resume waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from django.db import connection, transaction

from brokerage.ledger.moves import move_jobs
from brokerage.ledger.ready_jobs import tell_of_jobs
from workqueues.ledger.commands import DONE
from workqueues.models import Task

BATCH = 1000

_ASKED = "SELECT id, command, command_time FROM workqueues_task WHERE command IN ('pause', 'resume') ORDER BY command_time"
_WAITING = """
SELECT id, computing_queue_id, task_queue_id FROM brokerage_job WHERE task_id = %s AND status = %s AND ended_at IS NULL
ORDER BY id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
"""
_LEFT = "SELECT FROM brokerage_job WHERE task_id = %s AND status = %s AND ended_at IS NULL LIMIT 1"
_PAUSED = "SELECT FROM workqueues_task WHERE id = %s AND (status = 'paused') = %s FOR SHARE"
_OF_PAUSED = """
SELECT j.id FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id WHERE j.id = ANY(%s) AND t.status = 'paused'
ORDER BY j.id FOR SHARE OF t
"""


def follow_pauses(who: str) -> int:
    """Hold back or let go the waiting jobs of tasks that were paused or resumed: with how many tasks it is done.

    A job that somebody has just now is looked at again in the next run: it begins, or is held back then.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ASKED)
        asked = cursor.fetchall()
    return sum(_follow(task_id, command == "pause", given, who) for task_id, command, given in asked)


def _follow(task_id: int, paused: bool, given: datetime, who: str) -> bool:
    source = "activated" if paused else "throttled"
    new = "throttled" if paused else "activated"
    why = "its task is paused" if paused else "its task is resumed"
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_WAITING, [task_id, source, BATCH])
            jobs = {id_: (queue, task_queue) for id_, queue, task_queue in cursor.fetchall()}
            cursor.execute(_PAUSED, [task_id, paused])
            if not cursor.rowcount:
                return False  # it was commanded otherwise meanwhile, which is followed next
            if not jobs:
                cursor.execute(_LEFT, [task_id, source])
                left = bool(cursor.rowcount)
                break
            moved = [id_ for (id_,) in move_jobs(list(jobs), new, who, why, sources=[source]).run()]
            if not paused:
                tell_of_jobs(Counter(jobs[id_] for id_ in moved))
    if left:
        return False
    columns = {"command": ""} if paused else DONE
    return Task.objects.filter(id=task_id, command_time=given).update(**columns) == 1


def hold_back_paused(job_ids: Sequence[int], who: str) -> list[int]:
    """Hold back those of these jobs, just activated by the caller, whose task is paused: the others."""
    with connection.cursor() as cursor:
        cursor.execute(_OF_PAUSED, [list(job_ids)])
        paused = [id_ for (id_,) in cursor.fetchall()]
    if paused:
        move_jobs(paused, "throttled", who, "its task is paused", sources=["activated"]).run()
    return [id_ for id_ in job_ids if id_ not in set(paused)]
