"""Rows of the list of shares and work queues: what each should have, has, wants and may have, as the agent share counted it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from broker_site.foundation.access.permissions import VoScope
from monitoring.queries.database import alias, rows, seen_by
from workqueues.models import GlobalShare, ShareStanding, WorkQueueStanding
from workqueues.models.share import Standing
from workqueues.queries.shares import trees
from workqueues.queries.units import Units
from workqueues.rules.shares.tree import walk


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One share or work queue. Target, entitled, used and queued in HS06, None while not counted yet.

    `kind`: share or work queue. `drives`: work of the VO is served by it. `deviation`: used less target, percent. `place`: of a
    leaf that drives, 0 = served first, below 1. `above`: more of it runs than it is entitled to. `ahead`: by how much it ran too
    much of late, below 0 too little; HS06.
    """

    vo: str
    kind: str
    name: str
    parent: str
    level: int
    drives: bool
    value: float | None
    percent: float | None
    target: float | None
    entitled: float | None
    used: float | None
    queued: float | None
    deviation: float | None
    jobs_running: int | None
    jobs_queued: int | None
    cores_running: int | None
    cores_queued: int | None
    place: float | None
    above: bool | None
    ahead: float | None
    counted_at: datetime | None


COUNTED = {
    "percent": "percent",
    "target": "target",
    "entitled": "entitled",
    "used": "hs06_running",
    "queued": "hs06_queued",
    "jobs_running": "jobs_running",
    "jobs_queued": "jobs_queued",
    "cores_running": "cores_running",
    "cores_queued": "cores_queued",
    "place": "place",
    "above": "above",
    "ahead": "ahead",
    "counted_at": "at",
}
"""Columns of a row that were counted -> where."""

# Work queues have a place where they drive their VO: its shares are counted only.
_DEVIATING = """
WITH driving AS (
    SELECT s.vo, 'work queue' AS kind, q.queue_name AS name, s.target, s.hs06_running, s.hs06_queued, s.at
    FROM workqueues_workqueuestanding s JOIN workqueues_workqueue q ON q.id = s.work_queue_id
    WHERE s.place IS NOT NULL AND (%(everything)s OR s.vo = ANY(%(vos)s))
)
SELECT * FROM (
    SELECT * FROM driving
    UNION ALL
    SELECT g.vo, 'share', g.name, s.target, s.hs06_running, s.hs06_queued, s.at
    FROM workqueues_sharestanding s JOIN workqueues_globalshare g ON g.name = s.share_id
    WHERE s.place IS NOT NULL AND (%(everything)s OR g.vo = ANY(%(vos)s)) AND g.vo NOT IN (SELECT vo FROM driving)
) AS leaves WHERE target <> hs06_running ORDER BY abs(hs06_running - target) DESC, vo, name LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A share or work queue that nothing divides further: what it uses beside what it should have, HS06, and what waits of it."""

    vo: str
    kind: str
    name: str
    target: float
    used: float
    queued: float
    counted_at: datetime

    @property
    def percent(self) -> float | None:
        """Used less target, percent of the target; None: it should have nothing."""
        return (self.used - self.target) / self.target * 100 if self.target else None


def most_deviating(scope: VoScope, most: int = 5) -> list[Deviation]:
    """Those whose use is furthest from their target, by the power that they have too much or too little; one statement."""
    return [Deviation(*row) for row in rows(_DEVIATING, {**seen_by(scope), "most": most})]


def share_rows(scope: VoScope) -> list[ShareRow]:
    """Shares and work queues of these VOs, by VO, parents before what is below them; four statements."""
    using = alias()
    known = trees(GlobalShare.objects.using(using).filter(scope.q()))
    standings = {s.share_id: s for s in ShareStanding.objects.using(using)}
    units = Units.load(using)
    by_vo: dict[str, list[WorkQueueStanding]] = defaultdict(list)
    for row in WorkQueueStanding.objects.using(using).filter(scope.q()).select_related("work_queue"):
        by_vo[row.vo].append(row)
    table = []
    for vo in sorted({*known, *by_vo}):
        drives = units.model(vo) == "global"
        for node, parent, level in walk(known[vo].nodes) if vo in known else ():
            table.append(_row(vo, "share", node.name, parent, level, drives, node.value, standings.get(node.name)))
        table += _queue_rows(vo, by_vo[vo])
    return table


def _queue_rows(vo: str, standings: Sequence[WorkQueueStanding]) -> Iterator[ShareRow]:
    """Work queues in their order, partitions before their sub queues."""
    names = {s.work_queue_id: s.work_queue.queue_name for s in standings}
    order = {s.work_queue_id: s.work_queue.queue_order for s in standings}

    def key(standing: WorkQueueStanding) -> tuple[int, bool, int]:
        inside = standing.work_queue.partition_id if standing.work_queue.partition_id in names else None
        return order[inside or standing.work_queue_id], inside is not None, order[standing.work_queue_id]

    for standing in sorted(standings, key=key):
        queue = standing.work_queue
        parent = names.get(queue.partition_id or 0, "")
        yield _row(vo, "work queue", queue.queue_name, parent, int(bool(parent)), True, queue.queue_share, standing)


def _row(
    vo: str, kind: str, name: str, parent: str, level: int, drives: bool, value: float | None, known: Standing | None
) -> ShareRow:
    counted = {column: getattr(known, stored, None) for column, stored in COUNTED.items()}
    deviation = (known.hs06_running - known.target) / known.target * 100 if known and known.target else None
    return ShareRow(
        vo=vo, kind=kind, name=name, parent=parent, level=level, drives=drives, value=value, deviation=deviation, **counted
    )
