"""Rows of the list of shares: what each should have, has, wants and may have, as the agent share counted it last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from monitoring.queries.database import alias
from workqueues.models import GlobalShare, ShareStanding
from workqueues.queries.shares import trees
from workqueues.rules.share_tree import Node


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


def share_rows() -> list[ShareRow]:
    """Every share, by VO, parents before their children; two statements."""
    known = trees(GlobalShare.objects.using(alias()))
    standings = {s.share_id: s for s in ShareStanding.objects.using(alias())}
    return [
        _row(vo, node, parent, level, standings)
        for vo, tree in sorted(known.items())
        for node, parent, level in _walk(tree.nodes)
    ]


def _walk(nodes: Sequence[Node], parent: str = "", level: int = 0) -> Iterator[tuple[Node, str, int]]:
    for node in nodes:
        yield node, parent, level
        yield from _walk(node.children, node.name, level + 1)


def _row(vo: str, node: Node, parent: str, level: int, standings: Mapping[str, ShareStanding]) -> ShareRow:
    s = standings.get(node.name)
    return ShareRow(
        vo=vo,
        name=node.name,
        parent=parent,
        level=level,
        value=node.value,
        percent=s and s.percent,
        target=s and s.target,
        entitled=s and s.entitled,
        used=s and s.hs06_running,
        queued=s and s.hs06_queued,
        deviation=(s.hs06_running - s.target) / s.target * 100 if s and s.target else None,
        jobs_running=s and s.jobs_running,
        jobs_queued=s and s.jobs_queued,
        cores_running=s and s.cores_running,
        cores_queued=s and s.cores_queued,
        place=s and s.place,
        counted_at=s and s.at,
    )
