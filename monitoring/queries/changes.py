"""Histories as pages show them: each move with how long the state before and after lasted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from brokerage.models import JobChange, TransferChange
from monitoring.queries.database import alias
from workqueues.models import TaskChange

MOST = 200
"""Moves that a page shows, the newest."""


@dataclass(frozen=True, slots=True)
class Move:
    """One move. `lasted_s`: seconds that the new state lasted; None for the one that still does. `attempt`: of a transfer."""

    at: datetime
    old: str
    new: str
    who: str
    why: str
    lasted_s: float | None
    attempt: int = 0


def task_moves(task_id: int) -> list[Move]:
    return _moves(TaskChange.objects.using(alias()).filter(task_id=task_id).order_by("-epoch")[:MOST])


def job_moves(job_id: int) -> list[Move]:
    return _moves(JobChange.objects.using(alias()).filter(job_id=job_id).order_by("-id")[:MOST])


def transfer_moves(transfer_id: int) -> list[Move]:
    return _moves(TransferChange.objects.using(alias()).filter(transfer_id=transfer_id).order_by("-id")[:MOST])


def _moves(changes: Iterable[TaskChange | JobChange | TransferChange]) -> list[Move]:
    moves: list[Move] = []
    for change in changes:
        lasted_s = (moves[-1].at - change.at).total_seconds() if moves else None
        attempt = change.attempt if isinstance(change, TransferChange) else 0
        moves.append(Move(change.at, change.old, change.new, change.who, change.why, lasted_s, attempt))
    return moves
