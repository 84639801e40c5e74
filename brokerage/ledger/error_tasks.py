"""Tasks of which jobs ended with an error, each once: so the list of errors tells how many without looking at jobs (decision L3).

A row moves to the minute in which the last job ended so. Windows end now, so those that moved into a window are its tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import connection

from brokerage.ledger.tally_groups import Group
from brokerage.rules.facts.rollups import MOST_ERROR_TASKS, Family

_NOTE = """
INSERT INTO brokerage_errortask (group_id, task_id, first_at, last_at)
SELECT * FROM unnest(%s::int[], %s::bigint[], %s::timestamptz[], %s::timestamptz[])
ON CONFLICT (group_id, task_id) DO UPDATE
    SET first_at = least(brokerage_errortask.first_at, EXCLUDED.first_at),
        last_at = greatest(brokerage_errortask.last_at, EXCLUDED.last_at)
    WHERE brokerage_errortask.last_at < EXCLUDED.last_at OR brokerage_errortask.first_at > EXCLUDED.first_at
"""
# Group by group, along the index. Of a group the last ones stay: as long as it is not full in a window, it has all of them.
_FORGET = f"""
DELETE FROM brokerage_errortask WHERE id IN (
    SELECT t.id FROM brokerage_tallygroup g CROSS JOIN LATERAL (
        (SELECT id FROM brokerage_errortask o WHERE o.group_id = g.id AND o.last_at < now() - make_interval(secs => %(keep)s)
            LIMIT %(limit)s)
        UNION
        (SELECT id FROM brokerage_errortask o WHERE o.group_id = g.id ORDER BY o.last_at DESC
            OFFSET {MOST_ERROR_TASKS} LIMIT %(limit)s)
    ) AS t WHERE g.family = '{Family.ERROR_OF}' LIMIT %(limit)s)
"""


def note_tasks(tasks: Mapping[tuple[Group, int], tuple[datetime, datetime]], ids: Mapping[Group, int]) -> None:
    """Note tasks with the first and the last minute in which jobs of them ended with an error; one statement."""
    rows = [(ids[group], task_id, first, last) for (group, task_id), (first, last) in tasks.items()]
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE, list(map(list, zip(*rows, strict=True))))


def forget_tasks(keep_s: float, limit: int) -> int:
    """Remove tasks of which no job ended so for that long, and those of an error that has too many, so many at most: how many."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, {"keep": keep_s, "limit": limit})
        return int(cursor.rowcount)
