"""Rows of the list of shares: the tree of each VO, with what each share should have, has, wants and may have."""

from __future__ import annotations

from dataclasses import dataclass

from brokerage.queries.share_use import use_by
from monitoring.queries.database import alias
from workqueues.models import GlobalShare
from workqueues.queries.shares import trees
from workqueues.rules.share_standing import of_tree


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One share. Target, entitled, used and queued in HS06; `deviation`: used less target, percent of the target."""

    vo: str
    name: str
    parent: str
    level: int
    value: float | None
    percent: float
    target: float
    entitled: float
    used: float
    queued: float
    deviation: float | None
    jobs_running: int
    jobs_queued: int
    cores_running: int
    cores_queued: int
    rank: int | None


def share_rows() -> list[ShareRow]:
    """Every share, by VO, parents before their children; two statements."""
    known = trees(GlobalShare.objects.using(alias()))
    used = use_by("gshare", alias())
    return [
        ShareRow(
            vo=vo,
            name=s.name,
            parent=s.parent,
            level=s.level,
            value=s.value,
            percent=s.percent,
            target=s.target,
            entitled=s.entitled,
            used=s.use.hs06_running,
            queued=s.use.hs06_queued,
            deviation=(s.use.hs06_running - s.target) / s.target * 100 if s.target else None,
            jobs_running=s.use.jobs_running,
            jobs_queued=s.use.jobs_queued,
            cores_running=s.use.cores_running,
            cores_queued=s.use.cores_queued,
            rank=s.rank,
        )
        for vo, tree in sorted(known.items())
        for s in of_tree(tree.nodes, used.get(vo, {}))
    ]
