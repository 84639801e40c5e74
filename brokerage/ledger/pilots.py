"""Pilots: registered, and when they were last seen: noted where they ask in vain, and from the leases of those at work.

A pilot at work costs no write of its own: each verb of it notes the time on its job, and now and then the pilot's row follows.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from uuid import UUID

from django.db import connection

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import Prepared
from brokerage.models import Pilot
from brokerage.rules.dispatch.requirement import Resource
from brokerage.rules.dispatch.resource import stored

SEEN_EVERY_S = 30
"""How exact the last sign of life of an idle pilot is; less often means fewer writes."""
AT_WORK_EVERY_S = 60
"""The same of a pilot at work."""
IDLE_EVERY_S = 10
"""How exact it is when a pilot that idles should have asked again."""
LATE_S = 5.0
"""A pilot that asks so much later than it should is not gone yet."""
MOST_IDLE = 100_000
"""Pilots that a process remembers to idle; beyond, their slots end to idle at the next look."""

_VAIN_ASK = Prepared(
    "vain_ask",
    "uuid, int, int, int, int, int, text, float8, jsonb",
    f"""
    WITH seen AS (
        UPDATE brokerage_pilot SET last_seen = now() WHERE id = $1 AND last_seen < now() - interval '{SEEN_EVERY_S} s'
    ), again AS (
        UPDATE brokerage_idleslot
        SET until = now() + make_interval(secs => $8), core_count = $3, memory_mb = $4, disk_mb = $5, walltime_s = $6, vo = $7,
            resource = $9
        WHERE pilot_id = $1 AND until - now() NOT BETWEEN make_interval(secs => $8 - {IDLE_EVERY_S}) AND make_interval(secs => $8)
    )
    INSERT INTO brokerage_idleslot (pilot_id, queue_id, core_count, memory_mb, disk_mb, walltime_s, vo, until, resource)
    SELECT $1, $2, $3, $4, $5, $6, $7, now() + make_interval(secs => $8), $9
    WHERE NOT EXISTS (SELECT FROM brokerage_idleslot WHERE pilot_id = $1)
    ON CONFLICT (pilot_id) DO NOTHING RETURNING true
    """,
)
_END_IDLING = Prepared(
    "end_idling",
    "text[]",
    """
    DELETE FROM brokerage_idleslot WHERE pilot_id IN (
        SELECT pilot_id FROM brokerage_idleslot WHERE pilot_id = ANY ($1::uuid[]) FOR UPDATE SKIP LOCKED)
    """,
)

_idle: set[UUID] = set()
"""Pilots of which this process has noted that they idle. Only for them a job costs a statement more."""


def register(pilot: Pilot) -> None:
    """A pilot has begun."""
    pilot.save(force_insert=True)


def note_vain_ask(pilot_id: UUID, queue_id: int, offer: Resource, again_s: float, *, leaves: bool = False) -> None:
    """Note that a pilot asked and got nothing: it is seen, and its slot idles. Every ask that ends so, or waits, is noted here.

    `again_s`: after how long it should ask again; `leaves`: so long it stays, and does not ask again. Most asks write nothing:
    the pilot at most every SEEN_EVERY_S, the slot at most every IDLE_EVERY_S. A slot that begins to idle may end a wait.
    """
    if len(_idle) >= MOST_IDLE:
        _idle.clear()
    _idle.add(pilot_id)
    stays_s = again_s if leaves else again_s + LATE_S + IDLE_EVERY_S
    needs = (offer.cores, offer.memory_mb, offer.disk_mb, offer.walltime_s, offer.vo)
    if _VAIN_ASK.run(str(pilot_id), queue_id, *needs, stays_s, json.dumps(stored(offer))):
        look_after_commit("free")


def end_idling(pilots: Collection[UUID]) -> None:
    """The slots of these pilots idle no more: they got jobs, or have hung up.

    Rows that are locked, or that another process noted, go at the next look.
    """
    if over := _idle.intersection(pilots):
        _idle.difference_update(over)
        _END_IDLING.run([str(pilot) for pilot in over])


def note_pilots_at_work() -> int:
    """Note the last sign of life of pilots that hold jobs: of how many. What others lock is left for the next time."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH held AS MATERIALIZED (
                SELECT lease_holder, max(last_seen) AS last_seen FROM brokerage_job
                WHERE lease_holder IS NOT NULL GROUP BY lease_holder
            ), due AS (
                SELECT p.id, held.last_seen FROM brokerage_pilot p JOIN held ON held.lease_holder = p.id
                WHERE p.id = ANY (ARRAY(SELECT lease_holder FROM held))
                    AND p.last_seen < held.last_seen - make_interval(secs => %s)
                FOR NO KEY UPDATE OF p SKIP LOCKED
            )
            UPDATE brokerage_pilot p SET last_seen = due.last_seen FROM due WHERE p.id = due.id
            """,
            [AT_WORK_EVERY_S],
        )
        return int(cursor.rowcount)
