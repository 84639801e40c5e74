"""The queues that a decision passes, those where only a limit or a share is in the way, and what a job asks of a slot there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from typing import NamedTuple

import numpy as np

from brokerage.rules.decision.assembly import TaskDecision
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.slots import Slot, SlotsAt

USER_CAPS = ("cap_running_jobs", "cap_queued_jobs", "cap_running_cores", "cap_queued_cores", "disk_quota", "user_limit")
CAPS = frozenset((*USER_CAPS, "cap_activated", "cap_queued", "overloaded", "transferring"))
"""Criteria by which a limit, not what the queue or the task is, keeps a task from a queue."""
SHARES = frozenset({"zeroshare"})
"""The same of the shares that a queue gives."""


class QueueSlot(NamedTuple):
    """What a job asks of a slot at one queue."""

    queue: str
    slot: Slot


def passed_queues(decision: TaskDecision[Queues], queues: Container[str]) -> Mapping[str, list[QueueSlot]]:
    """What a decision says of these queues: what holds the task there, empty where it passes -> the queues.

    Passing is also who was not among the best: others had more weight, and may be full. Queues that fail any other criterion
    than caps and shares are left out.
    """
    policy, ask, columns, config = decision.inputs
    failed = decision.decision.failed()[:-1]
    labels = [criterion.label for criterion in policy.criteria[:-1]]
    limits = np.array([label in CAPS or label in SHARES for label in labels], dtype=np.bool_)
    able = np.logical_not(failed[~limits].any(axis=0)).tolist()
    prepared, compensation = policy.prepare(ask, config), config.get("MEMORY_COMPENSATION", 1.0)
    by_hold: dict[str, list[QueueSlot]] = defaultdict(list)
    for row, queue in enumerate(columns.own_names):
        if able[row] and queue in queues:
            label = labels[int(np.argmax(failed[:, row]))] if failed[:, row].any() else ""
            hold = f"{'share' if label in SHARES else 'cap'}: -{label}" if label else ""
            by_hold[hold].append(QueueSlot(queue, SlotsAt(prepared, columns, row, compensation).of(0, 0)))
    return by_hold
