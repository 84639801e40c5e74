"""Which idle slots stand beside work that they may do, and which beside work that a share, the throttler or a cap holds.

A slot is idle from an ask in vain until it gets a job or is gone. Work is eligible for it where a waiting job fits it, or where a
task has files due that passes its queue on present facts, and whose unit may get jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from brokerage.rules.decision.assembly import TaskDecision
from brokerage.rules.dispatch.matching import Requirement, Resource, WaitingQueue, fitting
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.slots import SlotsAt

LONG_S = 10.0
"""A slot that idles beside eligible work for longer needs a reason."""

USER_CAPS = ("cap_running_jobs", "cap_queued_jobs", "cap_running_cores", "cap_queued_cores", "disk_quota", "user_limit")
CAPS = frozenset((*USER_CAPS, "cap_activated", "cap_queued", "overloaded", "transferring"))
"""Criteria by which a limit, not what the queue or the task is, keeps a task from a queue."""
SHARES = frozenset({"zeroshare"})
"""The same of the shares that a queue gives."""


class Work(NamedTuple):
    """Work for at most `n` slots, with what a job of it requires at each queue where it may run.

    `why`: what it waits for; `held`: that is a share, the throttler or a cap. `task_id`: 0 for jobs of several tasks.
    """

    requirements: tuple[Requirement, ...]
    n: int
    why: str
    held: bool = False
    task_id: int = 0


def work_beside(slots: Sequence[Resource], work: Sequence[Work]) -> list[Work | None]:
    """For each idle slot the work beside which it stands: eligible work if there is any, else held work, else None.

    Each job stands beside one slot only: of ten slots beside one job, one idles beside work.
    """
    beside: list[Work | None] = [None] * len(slots)
    left = [one.n for one in work]
    for held in (False, True):
        at_queue: dict[str, list[WaitingQueue]] = defaultdict(list)
        for index, one in enumerate(work):
            if one.held == held:
                for requirement in one.requirements:
                    at_queue[requirement.queue].append(WaitingQueue(index, requirement, 0))
        for place, slot in enumerate(slots):
            if beside[place] is None and (index := _first(at_queue[slot.queue], slot, left)) is not None:
                left[index] -= 1
                beside[place] = work[index]
    return beside


def _first(waiting: Sequence[WaitingQueue], slot: Resource, left: Sequence[int]) -> int | None:
    """The first work that fits the slot and is not taken by other slots."""
    return next((one.id for one in fitting(waiting, slot) if left[one.id] > 0), None)


def work_of_task(
    decision: TaskDecision[Queues], queues: Container[str], n: int, why: str, throttle: str, task_id: int
) -> Iterator[Work]:
    """What a decision of this moment about a task with `n` files due says of these queues.

    `why`: what the task waits for; `throttle`: why its unit gets no jobs, empty where it may. Passing is also who was not among
    the best: others had more weight, and may be full.
    """
    policy, ask, columns, config = decision.inputs
    failed = decision.decision.failed()[:-1]
    labels = [criterion.label for criterion in policy.criteria[:-1]]
    limits = np.array([label in CAPS or label in SHARES for label in labels], dtype=np.bool_)
    able = ~failed[~limits].any(axis=0)
    prepared, compensation = policy.prepare(ask, config), config.get("MEMORY_COMPENSATION", 1.0)
    by_reason: dict[str, list[Requirement]] = defaultdict(list)
    names = columns.own_names
    for row in np.flatnonzero(able).tolist():
        if names[row] in queues:
            first = int(np.argmax(failed[:, row])) if failed[:, row].any() else -1
            reason = "" if first < 0 else f"{'share' if labels[first] in SHARES else 'cap'}: -{labels[first]}"
            slot = SlotsAt(prepared, columns, row, compensation).of(0, 0)
            by_reason[reason].append(Requirement(names[row], slot.core_count, slot.ram_mb, slot.disk_mb, slot.walltime_s, ask.vo))
    for reason, requirements in by_reason.items():
        hold = reason or (f"throttler: {throttle}" if throttle else "")
        yield Work(tuple(requirements), n, hold or why, bool(hold), task_id)
