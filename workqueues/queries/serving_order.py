"""What the order of serving stands on: the share trees and work queues with what they run, as the agent share counted it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from django.db import DEFAULT_DB_ALIAS, connection, connections

from workqueues.rules.shares.serving import ServingOrder, UnitTree
from workqueues.rules.shares.tree import Node

_UNITS = """
SELECT true, g.vo, g.name, coalesce(g.parent_id, ''), g.value, coalesce(s.hs06_running, 0), coalesce(s.ahead, 0), true,
    g.position AS place
FROM workqueues_globalshare g LEFT JOIN workqueues_sharestanding s ON s.share_id = g.name
UNION ALL
SELECT false, s.vo, s.work_queue_id::text, coalesce(q.partition_id::text, ''), s.percent, s.hs06_running, s.ahead,
    q.queue_share IS NOT NULL, q.queue_order
FROM workqueues_workqueuestanding s JOIN workqueues_workqueue q ON q.id = s.work_queue_id
WHERE EXISTS (SELECT FROM workqueues_workqueuestanding o WHERE o.vo = s.vo AND o.place IS NOT NULL)
ORDER BY place, 3
"""
"""Shares, and behind them work queues."""
_COUNTED = """
SELECT extract(epoch FROM max(at))::float8, extract(epoch FROM now() - max(at))::float8
FROM (SELECT max(at) AS at FROM workqueues_sharestanding UNION ALL SELECT max(at) FROM workqueues_workqueuestanding) s
"""


def counted_at() -> tuple[float, float]:
    """When it was counted what units have (seconds since 1970), and how long ago, s; zeros where it never was."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED)
        at, age_s = cursor.fetchone()
        return at or 0.0, age_s or 0.0


def serving_order(using: str = DEFAULT_DB_ALIAS) -> ServingOrder:
    """Where all units stand; one statement over small tables."""
    with connections[using].cursor() as cursor:
        cursor.execute(_UNITS)
        rows = cursor.fetchall()
    return ServingOrder(_trees(row[1:-1] for row in rows if row[0]), _trees(row[1:-1] for row in rows if not row[0]))


def _trees(rows: Iterable[tuple[str, str, str, float, float, float, bool]]) -> dict[str, UnitTree]:
    by_vo: dict[str, dict[str, list[tuple[str, float]]]] = defaultdict(lambda: defaultdict(list))
    running: dict[str, dict[str, float]] = defaultdict(dict)
    ahead: dict[str, dict[str, float]] = defaultdict(dict)
    shared: dict[str, bool] = defaultdict(bool)
    for vo, name, parent, value, hs06, late, has_share in rows:
        by_vo[vo][parent].append((name, value))
        running[vo][name], ahead[vo][name] = hs06, late
        shared[vo] |= has_share
    return {vo: UnitTree(_nodes("", below), running[vo], equal=not shared[vo], ahead=ahead[vo]) for vo, below in by_vo.items()}


def _nodes(parent: str, below: Mapping[str, list[tuple[str, float]]]) -> tuple[Node, ...]:
    return tuple(Node(name, value, _nodes(name, below)) for name, value in below.get(parent, ()))
