"""Tasks that found no place wait, in groups that ask for the same; and what ends their waits before their time.

A task does not wait at all where a storage came or went since the world was read that it was judged by.

A storage that comes back wakes who waits in no group. A decision that was under way then waits for nothing that is still so: the
lock keeps both from passing each other, and the time of the last change tells whether there was one in between.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import connection, transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.agency.run import Run
from brokerage.models import WaitGroup
from brokerage.queries.world_version import last_root_change
from brokerage.rules.decision.assembly import TaskDecision
from brokerage.rules.placement.wait_cause import LOOK_NOW, MORE_LEFT, WaitCause, WorldVersion, cause_of
from workqueues.ledger.holds import retry_later, set_pending

_ALONE = "SELECT pg_advisory_xact_lock(hashtext('roots of storages'))"
_TOGETHER = "SELECT pg_advisory_xact_lock_shared(hashtext('roots of storages'))"


def lock_roots() -> None:
    """For the rest of the caller's transaction nobody begins to wait for a place."""
    with connection.cursor() as cursor:
        cursor.execute(_ALONE)


def grid_changed() -> None:
    """The grid is another once the caller's transaction is committed: tasks that wait are judged by it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO brokerage_gridrevision (id, number) VALUES (1, 1)"
            " ON CONFLICT (id) DO UPDATE SET number = brokerage_gridrevision.number + 1"
        )
    look_after_commit("free")


def wait_for_place(
    run: Run,
    task_id: int,
    reason: str,
    wait_s: float,
    world: WorldVersion,
    *,
    decision: TaskDecision[Any] | None = None,
    pending: bool = False,
) -> None:
    """A claimed task waits for `wait_s` seconds, in its state or pending; for none where storages changed since it was judged.

    `decision`: the one that found no place, if it was one; then the task is in the group of those that ask for the same.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_TOGETHER)
        if last_root_change() != world.roots_at:
            wait_s = 0.0
        group = _group(decision, world) if decision is not None else None
        if decision is not None and group is None:  # nothing would end its wait
            wait_s = min(wait_s, gdpconfig.value("jobbroker", "LOOK_AGAIN") or wait_s)
        if pending:
            set_pending(run.id, task_id, reason, wait_s, run.who)
        else:
            retry_later(run.id, task_id, reason, wait_s)
        if group is not None:
            with connection.cursor() as cursor:
                cursor.execute(_JOIN, [group, task_id])


_GROUP = """
WITH made AS (
    INSERT INTO brokerage_waitgroup (key, policy, ask, own, criteria, queues, judged_at, grid_revision, config_revision)
    VALUES (%(key)s, %(policy)s, %(ask)s, %(own)s, %(criteria)s::text[], %(queues)s::text[], %(at)s, %(grid)s, %(config)s)
    ON CONFLICT (key) DO NOTHING RETURNING id
), older AS (
    SELECT id FROM brokerage_waitgroup WHERE key = %(key)s AND judged_at < %(at)s FOR NO KEY UPDATE SKIP LOCKED
), judged AS (
    UPDATE brokerage_waitgroup g SET criteria = %(criteria)s::text[], queues = %(queues)s::text[], ask = %(ask)s, own = %(own)s,
        judged_at = %(at)s, config_revision = %(config)s,
        grid_revision = CASE WHEN g.grid_revision = %(look_now)s THEN g.grid_revision ELSE %(grid)s END
    FROM older WHERE g.id = older.id
), there AS (
    SELECT id FROM brokerage_waitgroup WHERE key = %(key)s FOR KEY SHARE SKIP LOCKED
)
SELECT id FROM made UNION ALL SELECT id FROM there
"""
"""The group, as it was judged last. One that somebody writes to stays as it was judged before; nobody waits for that."""
_JOIN = """
INSERT INTO brokerage_taskwait AS w (task_id, group_id, until)
SELECT id, %s, next_look_at FROM workqueues_task WHERE id = %s AND next_look_at IS NOT NULL
ON CONFLICT (task_id) DO UPDATE SET group_id = excluded.group_id, until = excluded.until
"""


LONGEST_NAME = 64
"""Of a policy that is kept; a longer one is found no more, and its tasks wait for their pause."""


def _group(decision: TaskDecision[Any], world: WorldVersion) -> int | None:
    """The group (id) of those that ask for the same; None where somebody keeps it locked, or makes it at this moment."""
    cause, (policy, ask, _, _) = cause_of(decision), decision.inputs
    with connection.cursor() as cursor:
        cursor.execute(
            _GROUP,
            {
                "key": cause.key,
                "policy": policy.name[:LONGEST_NAME],
                "ask": json.dumps(ask.to_document()),
                "own": decision.task_facts.to_bytes(),
                "criteria": list(cause.criteria),
                "queues": list(cause.queues),
                "at": world.at,
                "grid": world.grid,
                "config": world.config,
                "look_now": LOOK_NOW,
            },
        )
        found = cursor.fetchone()
    return int(found[0]) if found else None


def note_causes(causes: Mapping[int, WaitCause]) -> None:
    """What these groups (ids) wait for is something else now. One that somebody has locked is judged again."""
    with connection.cursor() as cursor:
        for group_id, cause in sorted(causes.items()):
            cursor.execute(
                """
                UPDATE brokerage_waitgroup SET criteria = %s::text[], queues = %s::text[]
                WHERE id IN (SELECT id FROM brokerage_waitgroup WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED)
                """,
                [list(cause.criteria), list(cause.queues), group_id],
            )


def note_judged(groups: Sequence[WaitGroup], more_left: Collection[int], world: WorldVersion) -> None:
    """These groups were judged by this world. Where somebody says "look now" meanwhile, it stays said; one that somebody has
    locked is judged again.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH judged AS (
                SELECT g.id FROM brokerage_waitgroup g JOIN unnest(%(ids)s::bigint[], %(read)s::bigint[]) AS r (id, revision)
                    ON g.id = r.id AND (g.grid_revision <> %(look_now)s OR r.revision = %(look_now)s)
                ORDER BY g.id FOR NO KEY UPDATE OF g SKIP LOCKED
            )
            UPDATE brokerage_waitgroup g SET judged_at = %(at)s, config_revision = %(config)s,
                grid_revision = CASE WHEN g.id = ANY(%(more)s::bigint[]) THEN %(more_left)s ELSE %(grid)s END
            FROM judged WHERE g.id = judged.id
            """,
            {
                "ids": [group.id for group in groups],
                "read": [group.grid_revision for group in groups],
                "more": list(more_left),
                "at": world.at,
                "grid": world.grid,
                "config": world.config,
                "look_now": LOOK_NOW,
                "more_left": MORE_LEFT,
            },
        )


def end_waits(task_ids: Sequence[int]) -> int:
    """Let these tasks be looked at now, as far as they wait: how many. What somebody holds is left."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE workqueues_task SET next_look_at = now() WHERE id IN (
                SELECT id FROM workqueues_task WHERE id = ANY(%s::bigint[]) AND next_look_at > now() AND ended_at IS NULL
                ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
            """,
            [list(task_ids)],
        )
        ended = int(cursor.rowcount)
    if ended:
        look_after_commit("wake", "assign", "generate")
    return ended


def drop_waits(most: int) -> None:
    """Forget tasks whose wait is over, and groups without any; at most so many of each."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM brokerage_taskwait WHERE task_id IN (
                SELECT w.task_id FROM brokerage_taskwait w LEFT JOIN workqueues_task t ON t.id = w.task_id
                WHERE w.until < now() - interval '1 minute'
                    AND (t.next_look_at IS DISTINCT FROM w.until OR t.ended_at IS NOT NULL)
                ORDER BY w.until LIMIT %s FOR UPDATE OF w SKIP LOCKED)
            """,
            [most],
        )
        cursor.execute(
            """
            DELETE FROM brokerage_waitgroup WHERE id IN (
                SELECT g.id FROM brokerage_waitgroup g
                WHERE g.judged_at < now() - interval '1 hour'
                    AND NOT EXISTS (SELECT FROM brokerage_taskwait w WHERE w.group_id = g.id)
                LIMIT %s FOR UPDATE SKIP LOCKED)
            """,
            [most],
        )
