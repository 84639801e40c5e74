"""Locks of agent runs on units: one run at a time makes jobs for a unit (JEDI_Process_Lock of seed 001).

Nobody waits for a lock. One that is not renewed may be taken over. A lock given back stays, with the time, so that who counted
jobs before that does not take it: he does not know of the jobs that were made meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import connection

from broker_site.foundation.agency.run import Run
from workqueues.rules.throttle.units import Unit

CLOUD = "default"


def database_time() -> datetime:
    """What time the database has, by which locks are dated."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        time: datetime = cursor.fetchone()[0]
        return time


def take_locks(units: Collection[Unit], component: str, run_id: str, seconds: float, counted_at: datetime) -> set[Unit]:
    """Lock those of the units that nobody holds and nobody gave back after `counted_at`, for `seconds`: which; one statement.

    A lock that its holder has not renewed for so many seconds is taken over.
    """
    keys = {_key(unit, component): unit for unit in units}
    rows = sorted(keys)
    if not rows:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO workqueues_processlock AS l
                (vo, prod_source_label, work_queue_id, cloud, resource_type, component, locked_by, locked_time)
            SELECT v.vo, v.label, v.queue, %(cloud)s, v.rtype, v.component, %(run)s, now()
            FROM unnest(%(vo)s::text[], %(label)s::text[], %(queue)s::int[], %(rtype)s::text[], %(component)s::text[])
                AS v(vo, label, queue, rtype, component)
            ON CONFLICT (vo, prod_source_label, work_queue_id, cloud, resource_type, component)
            DO UPDATE SET locked_by = EXCLUDED.locked_by, locked_time = EXCLUDED.locked_time
            WHERE CASE WHEN l.locked_by = '' THEN l.locked_time <= %(counted_at)s
                ELSE l.locked_by = EXCLUDED.locked_by OR l.locked_time <= now() - make_interval(secs => %(seconds)s) END
            RETURNING vo, prod_source_label, work_queue_id, resource_type, component
            """,
            dict(zip(("vo", "label", "queue", "rtype", "component"), map(list, zip(*rows, strict=True)), strict=True))
            | {"cloud": CLOUD, "run": run_id, "seconds": seconds, "counted_at": counted_at},
        )
        return {keys[row] for row in cursor.fetchall()}


def take_locks_in_turn(
    tasks_of: Mapping[Unit, int], unlocked: Collection[Unit], tasks: int, run: Run, counted_at: datetime
) -> frozenset[Unit]:
    """Lock units in their order until their tasks fill a run of so many: which; what is left over is for other runs.

    `tasks_of`: tasks of each unit; `unlocked`: units that need no lock, which fill the run too. What somebody else has, or had
    since the count, is passed over.
    """
    locked: set[Unit] = set()
    left, units = tasks, list(tasks_of)
    while units and left > 0:
        wanted: list[Unit] = []
        while units and sum(tasks_of[unit] for unit in wanted) < left:
            wanted.append(units.pop(0))
        locks = take_locks([unit for unit in wanted if unit not in unlocked], run.agent, run.id, run.claim_s, counted_at)
        left -= sum(tasks_of[unit] for unit in wanted if unit in locks or unit in unlocked)
        locked |= locks
    return frozenset(locked)


def renew_locks(run_id: str) -> None:
    """Hold all locks of a run from now on anew."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workqueues_processlock SET locked_time = now() WHERE locked_by = %s", [run_id])


def release_locks(run_id: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workqueues_processlock SET locked_by = '', locked_time = now() WHERE locked_by = %s", [run_id])


def _key(unit: Unit, component: str) -> tuple[str, str, int, str, str]:
    """The lock's key; a share, which has no number, stands in the component."""
    named = component if unit.work_queue_id else f"{component} {unit.name}"
    return unit.vo, unit.label, unit.work_queue_id, unit.resource_type, named
