"""Priorities of task queues from the shares of groups, and their correction by what was used (row D2; facts on matching a7).

A group with JOB_SHARING divides its share among all its task queues, another first among its owners. Of that each task queue has
its part by weight, the average of the real priorities of its jobs. Those of one owner that differ only in where they may run all
get the sum of their parts: a job that may run at few sites stands no worse there than its like. Pure; shares and use are in any
unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from math import fsum, inf
from typing import NamedTuple, TypeVar

from brokerage.rules.dispatch.groups import JOB_SHARING, UNNAMED, Group

K = TypeVar("K", bound=Hashable)

LEAST_PRIORITY = 0.001
"""No task queue has less."""

BACKGROUND_WEIGHT = 0.1
"""Task queues of no greater weight are background, where their group allows that."""

MOST_CORRECTION = 5.0
"""A share is corrected by at most this factor, or its inverse."""


class QueueJobs(NamedTuple):
    """The waiting jobs of a task queue: owner, number, and the sum of their real priorities.

    `alike`: equal for task queues that differ only in where they may run (`task_queue_key.key_but_for_places`).
    """

    owner: str
    n: int
    real_priority: float
    alike: Hashable

    @property
    def weight(self) -> float:
        """The average real priority; 0 without jobs."""
        return self.real_priority / self.n if self.n else 0.0


class TimeSlice(NamedTuple):
    """What was used in a stretch of the past: entity -> amount, how much the slice counts, and the most that it corrects."""

    usage: Mapping[str, float]
    weight: float = 1.0
    most: float = 3.0


def owner_shares(group: Group, owners: Collection[str]) -> dict[str, float]:
    """The shares of those owners of a group who have task queues, before correction."""
    return dict.fromkeys(owners, group.share / len(owners)) if owners else {}


def queue_priorities(
    queues: Mapping[K, QueueJobs], group: Group = UNNAMED, shares: Mapping[str, float] | None = None
) -> dict[K, float]:
    """The priority of each task queue of one group.

    `shares`: those of all its owners where they have been corrected; a group with JOB_SHARING has none. A task queue without jobs
    has the least priority and takes nothing from the others.
    """
    if JOB_SHARING in group.properties:
        return _summed(queues, _divided(queues, group.share, group))
    by_owner: dict[str, dict[K, QueueJobs]] = defaultdict(dict)
    for name, queue in queues.items():
        by_owner[queue.owner][name] = queue
    shares = owner_shares(group, by_owner) if shares is None else shares
    parts: dict[K, float] = {}
    for owner, own in by_owner.items():
        parts |= _divided(own, shares[owner], group)
    return _summed(queues, parts)


def _divided(queues: Mapping[K, QueueJobs], share: float, group: Group) -> dict[K, float]:
    """What each has by its weight, at least LEAST_PRIORITY; background task queues have that, and are no part of the sum."""
    weights = {
        name: 0.0 if group.background and queue.weight <= BACKGROUND_WEIGHT else queue.weight for name, queue in queues.items()
    }
    total = fsum(weights.values())
    return {name: max(share * weight / total, LEAST_PRIORITY) if weight else LEAST_PRIORITY for name, weight in weights.items()}


def _summed(queues: Mapping[K, QueueJobs], parts: Mapping[K, float]) -> dict[K, float]:
    """The parts, those of one owner that are alike put together for each of them."""
    together: dict[Hashable, list[float]] = defaultdict(list)
    for name, queue in queues.items():
        if queue.n:
            together[queue.owner, queue.alike].append(parts[name])
    sums = {alike: fsum(those) for alike, those in together.items()}
    return {name: sums[queue.owner, queue.alike] if queue.n else LEAST_PRIORITY for name, queue in queues.items()}


def corrected(shares: Mapping[str, float], slices: Sequence[TimeSlice], most: float = MOST_CORRECTION) -> dict[str, float]:
    """The shares, larger for who used less than its part, smaller for who used more, by the time slices together.

    In a slice the factor of an entity is its part of the shares over its part of the use, within [1/most, most] of the slice,
    times the slice's part of all weights; one that is not in the slice has its `most`, whole. The sum over the slices, within
    [1/most, most], multiplies the share. Slices in which none of them used anything do not count; without others nothing
    changes.
    """
    total, weights = fsum(shares.values()), fsum(each.weight for each in slices)
    used = [(each, sum_) for each in slices if (sum_ := fsum(each.usage.get(name, 0.0) for name in shares)) > 0]
    if not used or total <= 0 or weights <= 0:
        return dict(shares)
    factors = {
        name: fsum(_factor(share / total, name, each, sum_) * _part(name, each, weights) for each, sum_ in used)
        for name, share in shares.items()
    }
    return {name: share * min(max(factors[name], 1 / most), most) for name, share in shares.items()}


def _factor(part: float, name: str, each: TimeSlice, total: float) -> float:
    used = each.usage.get(name, 0.0) / total
    return min(max(part / used if used else inf, 1 / each.most), each.most)


def _part(name: str, each: TimeSlice, weights: float) -> float:
    """How much the slice counts for the entity: whole for one that is not in it."""
    return each.weight / weights if name in each.usage else 1.0
