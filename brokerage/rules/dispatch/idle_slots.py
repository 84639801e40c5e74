"""Which idle slots stand beside work that they may do, and which beside work that a share, the throttler or a cap holds.

A slot is idle from an ask in vain until it gets a job or is gone. Work is eligible for it where a waiting job fits it, or where a
task has files due that passes its queue on present facts and whose unit may get jobs. Not here: which queues a task passes
(`brokerage.rules.placement.passed_queues`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from brokerage.rules.dispatch.requirement import Requirement, Resource, fits

LONG_S = 10.0
"""A slot that idles beside eligible work for longer needs a reason."""


class Work(NamedTuple):
    """Work for at most `n` slots, with what a job of it requires at each queue where it may run.

    `why`: what it waits for; `held`: that is a share, the throttler or a cap. `task_id`: 0 for jobs of several tasks. `share`: of
    jobs that are bound to their one queue; None: of others.
    """

    requirements: tuple[Requirement, ...]
    n: int
    why: str
    held: bool = False
    task_id: int = 0
    share: str | None = None


class Unserved(NamedTuple):
    """Slots that idle at one queue and that no job there fits, and of the jobs bound to it those that fit one that idles.

    `waiting`: by share, of each task queue at most as many as slots idle.
    """

    slots: Sequence[Resource]
    waiting: Mapping[str, int]


def unserved(slots: Sequence[Resource], jobs: Sequence[Work]) -> Mapping[str, Unserved]:
    """Queue -> its slots that idle though jobs wait there, as none of these fits them. `jobs`: all that wait at these queues."""
    alone: dict[str, list[Resource]] = defaultdict(list)
    for slot, work in zip(slots, work_beside(slots, jobs), strict=True):
        if work is None:
            alone[slot.queue].append(slot)
    waiting: dict[str, Counter[str]] = defaultdict(Counter)
    for one in jobs:
        if one.share is not None and any(fits(need, slot) for need in one.requirements for slot in slots):
            waiting[one.requirements[0].queue][one.share] += one.n
    return {queue: Unserved(idle, waiting.get(queue, {})) for queue, idle in alone.items()}


def served_by(needs: Iterable[Requirement], idle: Mapping[str, Unserved]) -> frozenset[str]:
    """Queues where a slot idles that a job of these requirements, one for each queue, may do."""
    return frozenset(
        need.queue for need in needs if need.queue in idle and any(fits(need, slot) for slot in idle[need.queue].slots)
    )


def work_beside(slots: Sequence[Resource], work: Sequence[Work]) -> list[Work | None]:
    """For each idle slot the work beside which it stands: eligible work if there is any, else held work, else None.

    Each job stands beside one slot only: of ten slots beside one job, one idles beside work.
    """
    beside: list[Work | None] = [None] * len(slots)
    left = [one.n for one in work]
    for held in (False, True):
        at_queue: dict[str, list[tuple[int, Requirement]]] = defaultdict(list)
        for i, one in enumerate(work):
            if one.held == held:
                for requirement in one.requirements:
                    at_queue[requirement.queue].append((i, requirement))
        for place, slot in enumerate(slots):
            index = _first(at_queue[slot.queue], slot, left) if beside[place] is None else None
            if index is not None:
                left[index] -= 1
                beside[place] = work[index]
    return beside


def _first(waiting: Sequence[tuple[int, Requirement]], slot: Resource, left: Sequence[int]) -> int | None:
    """The first work that fits the slot and is not taken by other slots."""
    return next((i for i, need in waiting if left[i] > 0 and fits(need, slot)), None)
