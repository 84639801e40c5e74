"""Seconds of idle slots beside work, by queue and hour: each look adds the time since the one before it.

A look by two agents at once counts once; where none looked for a while, as much is counted as slots have idled, at most GAP_S.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from brokerage.rules.dispatch.idle_slots import Work

GAP_S = 30.0
"""Most seconds that one look adds for a slot."""
KEPT_H = 48
"""Hours that are kept."""


_BESIDE = """
WITH judged AS (
    SELECT s.pilot_id, j.beside FROM unnest(%s::uuid[], %s::bool[]) AS j(pilot, beside)
        JOIN brokerage_idleslot s ON s.pilot_id = j.pilot ORDER BY s.pilot_id FOR UPDATE OF s SKIP LOCKED
), noted AS (
    UPDATE brokerage_idleslot s SET beside_since = CASE WHEN judged.beside THEN now() END
    FROM judged WHERE s.pilot_id = judged.pilot_id AND judged.beside <> (s.beside_since IS NOT NULL)
)
SELECT s.pilot_id, extract(epoch FROM now() - s.beside_since)::float8
FROM judged JOIN brokerage_idleslot s USING (pilot_id) WHERE judged.beside AND s.beside_since IS NOT NULL
"""
_ADD = """
INSERT INTO brokerage_idlehour AS h
    (queue_id, hour, looked_at, idle_s, beside_s, held_s, idle, beside, held, longest_s, why, why_held, task_id)
SELECT queue, date_trunc('hour', now(), 'UTC'), now(), idle_s, beside_s, held_s, idle, beside, held, longest_s, why, why_held,
    task
FROM jsonb_to_recordset(%s) AS v(queue bigint, idle_s float8, beside_s float8, held_s float8, idle int, beside int, held int,
    longest_s float8, why text, why_held text, task bigint)
ON CONFLICT (queue_id, hour) DO UPDATE SET looked_at = excluded.looked_at, idle_s = h.idle_s + excluded.idle_s,
    beside_s = h.beside_s + excluded.beside_s, held_s = h.held_s + excluded.held_s, idle = excluded.idle,
    beside = excluded.beside, held = excluded.held, longest_s = excluded.longest_s, why = excluded.why,
    why_held = excluded.why_held, task_id = excluded.task_id
"""
_IDLE_NO_MORE = """
UPDATE brokerage_idlehour SET idle = 0, beside = 0, held = 0, longest_s = 0, why = '', why_held = '', task_id = NULL
WHERE hour > now() - interval '3 hours' AND idle > 0 AND looked_at < now()
"""


class SlotState(NamedTuple):
    """An idle slot as it was found: for how long it idles, and the work that it stands beside."""

    pilot_id: UUID
    queue_id: int
    idle_s: float
    beside: Work | None


def drop_slots() -> int:
    """Forget slots that idle no more: those whose pilots have not asked again, or hold what they asked for.

    Handing out a job ends the idling of its slot, but for a row that somebody has locked.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM brokerage_idleslot WHERE pilot_id IN (
                SELECT s.pilot_id FROM brokerage_idleslot s
                WHERE s.until < now()
                    OR s.core_count > (SELECT core_count FROM brokerage_pilot p WHERE p.id = s.pilot_id) - (
                        SELECT coalesce(sum(j.core_count), 0) FROM brokerage_job j WHERE j.lease_holder = s.pilot_id)
                FOR UPDATE SKIP LOCKED)
            """
        )
        return int(cursor.rowcount)


def note_idle(slots: Sequence[SlotState], every_s: float) -> None:
    """Add the time since the last look to the hour of each queue, and note how it stands now; a look is due each `every_s`.

    A slot that began to idle since then stands for those that did so and have got a job: it counts for the whole time.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('idle slots'))")
        if not cursor.fetchone()[0]:
            return
        cursor.execute("SELECT extract(epoch FROM now() - max(looked_at))::float8 FROM brokerage_idlehour")
        (last_s,) = cursor.fetchone()
        since_s = GAP_S if last_s is None else min(last_s, GAP_S)
        cursor.execute(_BESIDE, [[s.pilot_id for s in slots], [is_beside(s) for s in slots]])
        longest_s = dict(cursor.fetchall())
        queues = sorted({slot.queue_id for slot in slots})
        rows = [_of_queue(queue, [s for s in slots if s.queue_id == queue], since_s, every_s, longest_s) for queue in queues]
        cursor.execute(_ADD, [json.dumps(rows)])
        cursor.execute(_IDLE_NO_MORE)
        cursor.execute("DELETE FROM brokerage_idlehour WHERE hour < now() - make_interval(hours => %s)", [KEPT_H])


def is_beside(slot: SlotState) -> bool:
    """Whether eligible work is there for it."""
    return slot.beside is not None and not slot.beside.held


def _of_queue(
    queue: int, slots: Sequence[SlotState], since_s: float, every_s: float, longest_s: Mapping[UUID, float]
) -> dict[str, Any]:
    """What is added to the hour of a queue; the reason is that of the slot which stands there for longest."""
    beside = sorted((s for s in slots if is_beside(s)), key=lambda s: -longest_s.get(s.pilot_id, 0.0))
    held = [s for s in slots if s.beside is not None and s.beside.held]

    def seconds(some: Sequence[SlotState]) -> float:
        return sum(min(max(s.idle_s, every_s), since_s) for s in some)

    works = [s.beside for s in (*beside, *held) if s.beside is not None]
    return {
        "queue": queue,
        "idle_s": seconds(slots),
        "beside_s": seconds(beside),
        "held_s": seconds(held),
        "idle": len(slots),
        "beside": len(beside),
        "held": len(held),
        "longest_s": max((longest_s.get(s.pilot_id, 0.0) for s in beside), default=0.0),
        "why": works[0].why[:255] if beside else "",
        "why_held": works[-1].why[:255] if held else "",
        "task": works[0].task_id or None if works else None,
    }
