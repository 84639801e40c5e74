"""Changes of a task that lives on: who asks, whether he may, what it does to the task and its jobs, and the audit.

Jobs that wait are locked before their task, so that none of them keeps what it had; jobs that are being made are made anew, since
the claim of the generator ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.db import connection, transaction

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from brokerage.ledger.reassigned_tasks import reassign
from brokerage.ledger.task_queues import SAME_BUT_SHARE
from brokerage.ledger.urgency import MOVE_OPENINGS, NEW_QUEUES
from brokerage.rules.facts.job_kind import LEAST_SCOUT_PRIORITY, MERGING_KINDS, JobKind
from brokerage.states import JOB
from workqueues.ledger.commands import check_right
from workqueues.ledger.elements.priorities import follow_priorities
from workqueues.ledger.task_changes import (
    Changed,
    complete_input,
    give_tries,
    opened,
    release_inputs,
    rewritten,
    set_attributes,
    set_split_rule,
    unusable,
)
from workqueues.models import GlobalShare, Task
from workqueues.queries.shares import trees
from workqueues.rules.refine.production import HIGHEST_PRIORITY
from workqueues.rules.task.changes import Asked, Change, PriorityAsked, ShareAsked
from workqueues.states import TASK

_WAITING = """
SELECT FROM brokerage_job WHERE task_id = %s AND ended_at IS NULL AND status = ANY (%s) ORDER BY id FOR NO KEY UPDATE
"""
_SCOUT = f"greatest({LEAST_SCOUT_PRIORITY}, t.current_priority + 1)"
_PRIORITY = f"""CASE WHEN j.kind = ANY (%(merging)s) THEN j.priority WHEN j.kind = {JobKind.SCOUT:d} THEN {_SCOUT}
    ELSE t.current_priority END"""
_FOLLOW = f"""
WITH mine AS (
    SELECT id FROM brokerage_job WHERE task_id = ANY(%(tasks)s) AND ended_at IS NULL ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE brokerage_job j SET priority = {_PRIORITY}, task_queue_id = n.id,
    ready_priority = CASE WHEN j.status = 'activated' THEN -{_PRIORITY} END
FROM mine, workqueues_task t, brokerage_taskqueue q, brokerage_taskqueue n
WHERE j.id = mine.id AND t.id = j.task_id AND q.id = j.task_queue_id AND n.gshare = t.gshare AND {SAME_BUT_SHARE}
"""
"""A job that somebody has just now is none that waits: these are locked before."""


def change_task(principal: Principal, task: Task, row: Change, asked: Asked) -> tuple[Task, Changed]:
    """Change a task in somebody's name, with an audit row: the task as it is then, and what happens. REST, pages and admin come
    here.

    Refused: 403 without the right to this task, 409 in a state that does not take it, 422 for a wish that cannot be carried out.
    """
    check_right(principal, task, row.right)
    _check_priority(principal, task, asked)
    with transaction.atomic():
        if row.name in _LOCKS_JOBS:
            with connection.cursor() as cursor:
                cursor.execute(_WAITING, [task.id, sorted(JOB.waiting)])
        locked = opened(task.id, row)
        changed = _CARRY_OUT[row.name](locked, asked, f"user:{principal.name}")
        audit(
            f"task.{row.name}", principal, f"task {task.id}", vo=task.vo, reason=asked.comment, before=dict(changed.before),
            after=dict(changed.after),
        )  # fmt: skip
    task.refresh_from_db()
    return task, changed


def _check_priority(principal: Principal, task: Task, asked: Asked) -> None:
    high = isinstance(asked, PriorityAsked) and asked.priority > HIGHEST_PRIORITY
    if high and not may(principal, "task:produce", task.vo):
        message = f"a priority above {HIGHEST_PRIORITY} needs the role production in {task.vo}"
        raise Refused(403, "Not permitted", f"priority: {message}.", [Problem("priority", "production", message)])


def _set_priority(task: Task, asked: PriorityAsked, who: str) -> Changed:
    before = {"priority": task.current_priority}
    rewritten(task, current_priority=asked.priority)
    follow_priorities([task.id])
    n = _follow(task.id)
    said = f"Task {task.id} has the priority {asked.priority}{_like_jobs(n)}; a retry restores that of the submission."
    return Changed(before, {"priority": asked.priority}, said)


def follow_priority(task_id: int, priority: int) -> None:
    """A task that was pulled has the priority of its task at the parent, as its jobs that wait have."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_WAITING, [task_id, sorted(JOB.waiting)])
        task = Task.objects.select_for_update(no_key=True).filter(id=task_id).first()
        if task is not None and task.status in TASK.steered and task.current_priority != priority:
            rewritten(task, current_priority=priority)
            follow_priorities([task_id])
            _follow(task_id)


def _set_share(task: Task, asked: ShareAsked, who: str) -> Changed:
    before = {"share": task.gshare}
    tree = trees(GlobalShare.objects.filter(vo=task.vo)).get(task.vo)
    leaves = [leaf.name for leaf in tree.leaves] if tree else []
    if asked.share not in leaves:
        near = nearest(asked.share, leaves)
        hint = f"; the nearest name is {near}" if near else f"; there are {', '.join(sorted(leaves)[:10])}"
        what = f"the VO {task.vo} has no leaf share {asked.share[:40]!r}{hint if leaves else ''}"
        raise unusable([Problem("share", "exists", what)])
    rewritten(task, gshare=asked.share)
    n = _follow(task.id)
    said = f"Task {task.id} belongs to the share {asked.share}{_like_jobs(n)}."
    return Changed(before, {"share": asked.share}, said)


def _like_jobs(n: int) -> str:
    """That so many jobs follow their task; empty without any."""
    return f", like the {n:,} job{' of it that has' if n == 1 else 's of it that have'} not ended" if n else ""


def _follow(task_id: int) -> int:
    """Jobs that have not ended get the priority and the share of their task: how many."""
    values = {"tasks": [task_id], "merging": [kind.value for kind in MERGING_KINDS]}
    with connection.cursor() as cursor:
        cursor.execute(NEW_QUEUES, values)
        cursor.execute(_FOLLOW, values)
        n = int(cursor.rowcount)
        cursor.execute(MOVE_OPENINGS, values)
        return n


_CARRY_OUT: Mapping[str, Callable[[Task, Any, str], Changed]] = {
    "priority": _set_priority,
    "share": _set_share,
    "reassign": reassign,
    "release": release_inputs,
    "input-complete": complete_input,
    "split-rule": set_split_rule,
    "attributes": set_attributes,
    "tries": give_tries,
}
_LOCKS_JOBS = frozenset({"priority", "share"})
