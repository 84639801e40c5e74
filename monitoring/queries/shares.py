"""Rows of the list of shares: what each should have, has, wants and may have, as the agent share counted it last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from broker_site.access.permissions import VoScope
from monitoring.queries.database import alias
from workqueues.models import GlobalShare, ShareStanding
from workqueues.queries.shares import trees
from workqueues.rules.share_tree import Node, walk


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One share. Target, entitled, used and queued in HS06, None while not counted yet; `deviation`: used less target, percent.

    `place`: of a leaf, 0 = served first, below 1.
    """

    vo: str
    name: str
    parent: str
    level: int
    value: float
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
    "counted_at": "at",
}
"""Columns of a row that were counted -> where."""


def share_rows(scope: VoScope) -> list[ShareRow]:
    """Every share of these VOs, by VO, parents before their children; two statements."""
    known = trees(GlobalShare.objects.using(alias()).filter(scope.q()))
    standings = {s.share_id: s for s in ShareStanding.objects.using(alias())}
    return [
        _row(vo, node, parent, level, standings) for vo, tree in sorted(known.items()) for node, parent, level in walk(tree.nodes)
    ]


def _row(vo: str, node: Node, parent: str, level: int, standings: Mapping[str, ShareStanding]) -> ShareRow:
    known = standings.get(node.name)
    counted = {name: getattr(known, column, None) for name, column in COUNTED.items()}
    deviation = (known.hs06_running - known.target) / known.target * 100 if known and known.target else None
    return ShareRow(vo=vo, name=node.name, parent=parent, level=level, value=node.value, deviation=deviation, **counted)
