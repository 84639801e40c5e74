"""Task queues whose jobs fit none of the slots that idle at their queue: noted at each look, forgotten a while after the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from brokerage.queries.misfits import KEPT_S

MOST_SLOTS = 100
"""Slots of a queue that are kept, each kind once."""

_NOTE = """
INSERT INTO brokerage_misfitqueue AS m (queue_id, seen_at, slots, task_queues)
SELECT %(queue)s, now(), jsonb_agg(kind), %(task_queues)s::bigint[] FROM (
    SELECT DISTINCT jsonb_build_array(core_count, memory_mb, disk_mb, walltime_s, vo, resource) AS kind
    FROM brokerage_idleslot WHERE pilot_id = ANY (%(pilots)s::uuid[]) LIMIT %(most)s) AS kinds
HAVING count(*) > 0
ON CONFLICT (queue_id) DO UPDATE SET seen_at = excluded.seen_at, slots = excluded.slots, task_queues = excluded.task_queues
WHERE m.seen_at < excluded.seen_at
"""
_FORGET = """
DELETE FROM brokerage_misfitqueue WHERE queue_id IN (
    SELECT queue_id FROM brokerage_misfitqueue WHERE seen_at < now() - make_interval(secs => %s) FOR UPDATE SKIP LOCKED)
"""


class MisfitsAt(NamedTuple):
    """What was found at one queue: idle slots that no job fits, and the task queues that fit no idle slot."""

    queue_id: int
    pilots: Sequence[UUID]
    task_queues: Sequence[int]


def note_misfits(found: Sequence[MisfitsAt]) -> None:
    """Keep what was found at these queues; what was found long ago goes."""
    with connection.cursor() as cursor:
        for queue_id, pilots, task_queues in sorted(found):
            cursor.execute(
                _NOTE, {"queue": queue_id, "pilots": list(pilots), "task_queues": list(task_queues), "most": MOST_SLOTS}
            )
        cursor.execute(_FORGET, [KEPT_S])
