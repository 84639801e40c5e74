"""Jobs that wait where none of the idle slots fits them, as the agent slots found it lately."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db import connection

from brokerage.rules.dispatch.requirement import Resource
from brokerage.rules.dispatch.resource import restored

KEPT_S = 60.0
"""So long holds what was found, so that the slots need not idle anew before each few jobs."""

_LATELY = "seen_at > now() - make_interval(secs => %(kept)s)"
MISFITS = f"SELECT unnest(task_queues) FROM brokerage_misfitqueue WHERE {_LATELY}"
"""Task queues whose jobs fit none of the slots that idle where they wait; `kept`: KEPT_S."""
_TASK_QUEUES = f"{MISFITS} AND queue_id <> ALL (%(but_at)s::bigint[])"
_SLOTS = f"""
SELECT q.name, m.slots::text FROM brokerage_misfitqueue m JOIN brokerage_computingqueue q ON q.id = m.queue_id WHERE {_LATELY}
"""


def misfit_task_queues(but_at: Sequence[int]) -> list[int]:
    """The task queues of `MISFITS`, without those at some queues."""
    with connection.cursor() as cursor:
        cursor.execute(_TASK_QUEUES, {"kept": KEPT_S, "but_at": list(but_at)})
        return [id_ for (id_,) in cursor.fetchall()]


def slots_beside_misfits() -> list[Resource]:
    """Slots, one of each kind at a queue, that idle, or did lately, though jobs wait there."""
    with connection.cursor() as cursor:
        cursor.execute(_SLOTS, {"kept": KEPT_S})
        return [
            restored(Resource(queue, *offer), said) for queue, slots in cursor.fetchall() for *offer, said in json.loads(slots)
        ]
