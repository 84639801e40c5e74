"""Somebody says "look now" at a task, a queue or a share: what waits there is judged at once, whenever it was due (decision B18).

A task is looked at itself. At a queue and in a share groups are judged, and as many tasks go on as there is room for.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.agency.look import look_after_commit
from brokerage.ledger.waits import end_waits
from brokerage.models import ComputingQueue
from brokerage.queries.movable_jobs import EVERY_VO
from brokerage.rules.placement.wait_cause import LOOK_NOW
from workqueues.models import GlobalShare, Task

_JUDGE = """
WITH asked AS (
    SELECT id FROM brokerage_waitgroup WHERE {groups} ORDER BY id FOR NO KEY UPDATE
), told AS (
    UPDATE brokerage_waitgroup g SET grid_revision = %s FROM asked WHERE g.id = asked.id
)
SELECT count(*) FROM brokerage_taskwait w JOIN workqueues_task t ON t.id = w.task_id AND t.next_look_at = w.until
WHERE w.group_id IN (SELECT id FROM asked) AND t.next_look_at > now() AND t.ended_at IS NULL
"""
_AT_QUEUE = _JUDGE.format(groups="queues @> ARRAY[%s::varchar] AND (%s OR ask->>'vo' = ANY (%s))")
_IN_SHARE = _JUDGE.format(groups="ask->>'vo' = %s AND ask->>'share' = %s")


def look_at_task(caller: Principal, task: Task) -> int:
    """Let a task that waits for a time be looked at now: 1 if it did, else 0."""
    with transaction.atomic():
        audit("task.look", caller, f"task {task.id}", vo=task.vo)
        return end_waits([task.id])


def look_at_queue(caller: Principal, queue: ComputingQueue, scope: VoScope = EVERY_VO) -> int:
    """Judge anew what waits in these VOs and may go to a queue: how many tasks."""
    vos = sorted(scope.names)
    return _judge(caller, "queue.look", f"queue {queue.name}", "", _AT_QUEUE, queue.name, scope.everything, vos)


def look_at_share(caller: Principal, share: GlobalShare) -> int:
    """Judge anew the tasks of a share that wait for a place: how many."""
    return _judge(caller, "share.look", f"share {share.name}", share.vo, _IN_SHARE, share.vo, share.name)


def _judge(caller: Principal, act: str, target: str, vo: str, statement: str, *values: Any) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        audit(act, caller, target, vo=vo)
        cursor.execute(statement, [*values, LOOK_NOW])
        look_after_commit("free", "generate")
        return int(cursor.fetchone()[0])
