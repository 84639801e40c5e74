"""Histories as pages show them: each move with how long the state before and after lasted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from brokerage.models import JobChange, TransferChange
from monitoring.queries.database import alias
from workqueues.models import ElementChange, TaskChange
from workqueues.rules.task.automatic_steps import AutomaticStep, of_job, of_task

MOST = 200
"""Moves that a page shows, the newest."""


@dataclass(frozen=True, slots=True)
class Move:
    """One move. `lasted_s`: seconds that the new state lasted; None for the one that still does. `attempt`: of a transfer.

    `rule`: by which the system made it, in words; `keys`: those of the configuration on which it depends. `again`: how often it
    was left and came back for the same reason, where that is told as one.
    """

    at: datetime
    old: str
    new: str
    who: str
    why: str
    lasted_s: float | None
    attempt: int = 0
    rule: str = ""
    keys: tuple[str, ...] = ()
    again: int = 0


def task_moves(task_id: int) -> list[Move]:
    return _moves(TaskChange.objects.using(alias()).filter(task_id=task_id).order_by("-epoch")[:MOST])


def job_moves(job_id: int) -> list[Move]:
    return _moves(JobChange.objects.using(alias()).filter(job_id=job_id).order_by("-id")[:MOST])


def transfer_moves(transfer_id: int) -> list[Move]:
    return _moves(TransferChange.objects.using(alias()).filter(transfer_id=transfer_id).order_by("-id")[:MOST])


def element_moves(element_id: int) -> list[Move]:
    return _moves(ElementChange.objects.using(alias()).filter(element_id=element_id).order_by("-id")[:MOST])


def folded(moves: Iterable[Move]) -> list[Move]:
    """Newest first, as they are given; a wait that was looked at and went on for the same reason is one, from its beginning."""
    kept: list[Move] = []
    for move in moves:
        if len(kept) > 1 and _goes_on(move, *kept[-2:]):
            wait, look = kept[-2:]
            lasted_s = None if wait.lasted_s is None else wait.lasted_s + (look.lasted_s or 0) + (move.lasted_s or 0)
            kept[-2:] = [replace(wait, at=move.at, old=move.old, lasted_s=lasted_s, again=wait.again + 1)]
        else:
            kept.append(move)
    return kept


def _goes_on(before: Move, wait: Move, look: Move) -> bool:
    """Whether a wait is the one before, which `look` interrupted."""
    same = (before.new, before.who, before.why) == (wait.new, wait.who, wait.why)
    return same and wait.new == "pending" and look.old == before.new and look.new == wait.old


def _moves(changes: Iterable[TaskChange | JobChange | TransferChange | ElementChange]) -> list[Move]:
    moves: list[Move] = []
    for change in changes:
        lasted_s = (moves[-1].at - change.at).total_seconds() if moves else None
        attempt = change.attempt if isinstance(change, TransferChange) else 0
        rule = _rule(change)
        move = Move(change.at, change.old, change.new, change.who, change.why, lasted_s, attempt)
        moves.append(replace(move, rule=rule.rule, keys=rule.keys) if rule else move)
    return moves


def _rule(change: TaskChange | JobChange | TransferChange | ElementChange) -> AutomaticStep | None:
    if isinstance(change, TaskChange):
        return of_task(change.old, change.new, change.who)
    return of_job(change.old, change.new, change.who, change.why) if isinstance(change, JobChange) else None
