"""Priorities of task queues from the shares of groups, and what groups used by the hour. The agent share writes both."""

from __future__ import annotations

import json
from collections.abc import Mapping

from django.db import connection, transaction

from brokerage.queries.group_jobs import OwnerKey

GAP_S = 60.0
"""Most seconds that one look adds."""
KEPT_S = 90 * 86400

_PRIORITIES = """
UPDATE brokerage_taskqueue t SET priority = v.priority
FROM (SELECT t.id, v.priority FROM unnest(%s::int[], %s::float8[]) AS v(id, priority) JOIN brokerage_taskqueue t ON t.id = v.id
    WHERE t.priority IS DISTINCT FROM v.priority ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED) AS v
WHERE t.id = v.id
"""
_SINCE = (
    "SELECT extract(epoch FROM now() - max(looked_at))::float8 FROM brokerage_groupuse WHERE hour > now() - interval '2 hours'"
)
_ADD = """
INSERT INTO brokerage_groupuse AS u (vo, owner_group, owner, hour, hs06_s, looked_at)
SELECT vo, "group", owner, date_trunc('hour', now(), 'UTC'), hs06 * %s, now()
FROM jsonb_to_recordset(%s) AS v(vo text, "group" text, owner text, hs06 float8)
ON CONFLICT (vo, owner_group, owner, hour) DO UPDATE SET hs06_s = u.hs06_s + excluded.hs06_s, looked_at = excluded.looked_at
"""
_FORGET = "DELETE FROM brokerage_groupuse WHERE hour < now() - make_interval(secs => %s)"


def note_priorities(priorities: Mapping[int, float]) -> int:
    """Give task queues these priorities: how many changed."""
    with connection.cursor() as cursor:
        cursor.execute(_PRIORITIES, [list(priorities), list(priorities.values())])
        return int(cursor.rowcount)


def note_use(running: Mapping[OwnerKey, float]) -> None:
    """Add what is held since the last look (HS06 x seconds, at most GAP_S); of two looks at once one counts."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('group use'))")
        if not cursor.fetchone()[0]:
            return
        cursor.execute(_SINCE)
        (since_s,) = cursor.fetchone()
        rows = [{**owner._asdict(), "hs06": hs06} for owner, hs06 in running.items()]
        cursor.execute(_ADD, [min(since_s or 0.0, GAP_S), json.dumps(rows)])
        cursor.execute(_FORGET, [KEPT_S])
