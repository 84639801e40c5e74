"""Which work queue takes a task: the first whose criteria hold (seed 001, work queues; row J1).

Here: the order and the choice with its story. Not here: the language of criteria (`criteria`), faults of queues together
(`work_queue_lint`), reading queues from the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workqueues.rules.work_queues.criteria import Expression
from workqueues.rules.work_queues.criteria.expression import Task, Truth, truth


@dataclass(frozen=True, slots=True)
class Queue:
    """A work queue as the mapping sees it.

    No `order` is evaluated last. `criteria` None takes every task. A partition takes none itself: its sub queues do, and
    `partition` is its name in them. `vo` and `label` (prodSourceLabel) narrow the queue; empty or `*` = any.
    """

    name: str
    order: int | None = None
    criteria: Expression | None = None
    is_partition: bool = False
    partition: str = ""
    vo: str = ""
    label: str = ""


class QueueTrial(NamedTuple):
    """One queue that was looked at: what its criteria said (None = not known, which is not met), or the scope it is out of."""

    queue: str
    verdict: Truth
    out_of_scope: str = ""


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """The queue that takes a task (None: no queue does), its partition if it has one, and every queue looked at, in order."""

    queue: str | None
    partition: str
    trials: tuple[QueueTrial, ...]


def ordered(queues: Iterable[Queue]) -> list[Queue]:
    """Queues in the order in which they are evaluated: by order, those without last, then by name."""
    return sorted(queues, key=lambda queue: (queue.order is None, queue.order or 0, queue.name))


def choose(queues: Sequence[Queue], task: Task, vo: str = "", label: str = "") -> QueueChoice:
    """The queue of a task; `task` as `criteria` reads it. No queue is looked at after the one that takes it."""
    trials = []
    for queue in ordered(queues):
        if queue.is_partition:
            continue
        if scope := _out_of_scope(queue, vo, label):
            trials.append(QueueTrial(queue.name, False, scope))
            continue
        verdict = True if queue.criteria is None else truth(queue.criteria, task)
        trials.append(QueueTrial(queue.name, verdict))
        if verdict:
            return QueueChoice(queue.name, queue.partition, tuple(trials))
    return QueueChoice(None, "", tuple(trials))


def _out_of_scope(queue: Queue, vo: str, label: str) -> str:
    if queue.vo not in ("", "*", vo):
        return f"is for the VO {queue.vo}"
    if queue.label not in ("", "*", label):
        return f"is for prodSourceLabel {queue.label}"
    return ""
