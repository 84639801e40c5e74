"""Which idle slots stand beside work that they may do, and which beside work that a share, the throttler or a cap holds.

A slot is idle from an ask in vain until it gets a job or is gone. Work is eligible for it where a waiting job fits it, or where a
task has files due that passes its queue on present facts and whose unit may get jobs. Not here: which queues a task passes
(`brokerage.rules.placement.passed_queues`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from brokerage.rules.dispatch.requirement import Requirement, Resource, fits

LONG_S = 10.0
"""A slot that idles beside eligible work for longer needs a reason."""


class Work(NamedTuple):
    """Work for at most `n` slots, with what a job of it requires at each queue where it may run.

    `why`: what it waits for; `held`: that is a share, the throttler, a cap or a full site.
    `task_id`: 0 for jobs of several tasks.
    `task_queue_id` of jobs that are bound to their one queue, else 0.
    """

    requirements: tuple[Requirement, ...]
    n: int
    why: str
    held: bool = False
    task_id: int = 0
    task_queue_id: int = 0


def misfits(slots: Sequence[Resource], jobs: Sequence[Work], queues: Container[str]) -> Mapping[str, list[int]]:
    """Queue, of these -> the task queues bound to it whose jobs fit none of its idle slots. `slots`, `jobs`: all there."""
    kinds: dict[str, list[Resource]] = defaultdict(list)
    for slot in dict.fromkeys(slots):
        kinds[slot.queue].append(slot)
    found: dict[str, list[int]] = defaultdict(list)
    for one in jobs:
        (need, *others) = one.requirements
        bound_here = one.task_queue_id and not others and need.queue in queues
        if bound_here and not any(fits(need, slot) for slot in kinds[need.queue]):
            found[need.queue].append(one.task_queue_id)
    return found


def served_by(needs: Iterable[Requirement], slots: Iterable[Resource]) -> frozenset[str]:
    """Queues with a slot among these that a job of the requirements, one for each queue, may do."""
    at_queue: dict[str, list[Resource]] = defaultdict(list)
    for slot in slots:
        at_queue[slot.queue].append(slot)
    return frozenset(need.queue for need in needs if any(fits(need, slot) for slot in at_queue[need.queue]))


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
