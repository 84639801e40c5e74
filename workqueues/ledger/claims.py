"""Claims: an agent run takes tasks for a while, so that two runs do not work on one; a claim not renewed may be taken over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from django.db import connection

from broker_site.foundation.agency.look import look
from workqueues.ledger.lost_claims import agent_of, give_back, note_lost_claims, work_of_run
from workqueues.ledger.moves import Stale
from workqueues.models import Task
from workqueues.queries.agent_work import DUE, STANDINGS, TURN, WORK

Order = Literal["priority", "share"]
"""Which tasks come first: those of the highest priority, or those of the unit whose turn it is, then priority."""


class OpenGroup(NamedTuple):
    """Tasks with these columns, which may be claimed; those of less than `least_priority` may not (None: all may).

    `turn`: groups of the lowest come first.
    """

    vo: str
    label: str
    gshare: str
    work_queue_id: int
    resource_type: str
    least_priority: int | None = None
    turn: int = 0


_PART = "\x1f"
OPEN = """JOIN unnest(%(keys)s::text[], %(least)s::int[], %(turns)s::int[]) AS o(key, least, turn)
    ON o.key = concat_ws(%(part)s, t.vo, t.prod_source_label, t.gshare, coalesce(t.work_queue_id, 0), t.resource_type)
        AND (o.least IS NULL OR t.current_priority >= o.least)"""
"""One key, not five columns: for these PostgreSQL would expect a single task and look for the files of each by itself."""

Way = Literal["priority", "share", "open"]
JOIN: Mapping[Way, str] = {"priority": "", "share": STANDINGS, "open": OPEN}
ORDER: Mapping[Way, str] = {"priority": "", "share": f"{TURN},", "open": "o.turn,"}
"""What is joined to the tasks, and by what they are ordered before their priority; `open` where groups are named."""

AMONG: Mapping[bool, str] = {True: "", False: "AND t.id = ANY(%(among)s)"}
"""Whether all tasks may be claimed -> what is asked of each."""


def claim_tasks(
    run_id: str,
    seconds: float,
    statuses: Sequence[str],
    limit: int,
    work: str = "any",
    order: Order = "priority",
    only: Sequence[OpenGroup] | None = None,
    among: Sequence[int] | None = None,
) -> list[Task]:
    """Claim up to `limit` unclaimed tasks in one of `statuses`, the first in `order`, for `seconds`.

    `only`: just tasks of these groups, each named once, in their turn; None: all. `among`: just these tasks. Returns the tasks as
    they are now, in order. Where a claim ran out its run was killed, which counts; a task on which the agent failed again and
    again is taken alone.
    """
    if only is not None and not only:
        return []
    way: Way = "open" if only else order
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH chosen AS MATERIALIZED (
                SELECT t.id, t.locked_by AS holder FROM workqueues_task t {JOIN[way]}
                WHERE t.status = ANY(%(statuses)s) AND (t.locked_by = '' OR t.locked_time < now())
                  AND {DUE[work]} AND {WORK[work]} {AMONG[among is None]}
                ORDER BY {ORDER[way]} t.current_priority DESC, t.modification_time, t.id
                LIMIT %(limit)s FOR NO KEY UPDATE OF t SKIP LOCKED)
            UPDATE workqueues_task c SET locked_by = %(run)s, locked_time = now() + make_interval(secs => %(seconds)s)
            FROM chosen WHERE c.id = chosen.id RETURNING c.id, chosen.holder
            """,
            {
                "run": run_id,
                "seconds": seconds,
                "statuses": list(statuses),
                "limit": limit,
                "among": list(among or ()),
                **_groups(only or ()),
            },
        )
        if not (holders := dict(cursor.fetchall())):
            return []  # as most runs find it
        cursor.execute(
            f"""SELECT t.id FROM workqueues_task t {JOIN[order]} WHERE t.id = ANY(%(ids)s) AND t.locked_by = %(run)s
            ORDER BY {ORDER[order]} t.current_priority DESC, t.modification_time, t.id""",
            {"ids": list(holders), "run": run_id},
        )
        in_order = [row[0] for row in cursor.fetchall()]
    lost = {id_: holder for id_, holder in holders.items() if holder}
    stuck = note_lost_claims(run_id, lost) if lost else ()
    claimed = Task.objects.in_bulk(in_order)
    tasks = [task for id_ in in_order if id_ not in stuck and (task := claimed.get(id_)) and task.locked_by == run_id]
    batch = work_of_run(run_id, tasks)
    if rest := [task.id for task in tasks if task not in batch]:
        give_back(run_id, rest)
        look(agent_of(run_id))  # they wait for no period: there may be as many suspects as a run takes
    return list(batch)


def _groups(only: Sequence[OpenGroup]) -> dict[str, Any]:
    """Parameters of OPEN."""
    return {
        "part": _PART,
        "keys": [_PART.join(map(str, group[:5])) for group in only],
        "least": [group.least_priority for group in only],
        "turns": [group.turn for group in only],
    }


def lock_claimed(task_id: int, run_id: str) -> Task:
    """Lock the task's row for this transaction and return it; Stale if the claim has gone to somebody else.

    Its key stays as it is, here and in all ledgers: rows that refer to a locked one can be written meanwhile. A lock of the whole
    row would hold them up, and the end of a job, which holds the lock of a dataset, would wait for the generator that wants it.
    """
    task = Task.objects.select_for_update(no_key=True).filter(id=task_id, locked_by=run_id).first()
    if task is None:
        raise Stale(f"the claim of {run_id} on task {task_id} is gone")
    return task


def release(task_id: int, run_id: str) -> None:
    """Give the claim back; nothing happens if it is no longer ours."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workqueues_task SET locked_by = '', locked_time = NULL, modification_time = now()"
            " WHERE id = %s AND locked_by = %s",
            [task_id, run_id],
        )
