"""What part of the CPU each work queue may use: shares of active queues, stretchable ones, partitions (seed 001, shares; C3).

Percent of all. Not here: hierarchical global shares (`share_tree`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALL = 100.0


@dataclass(frozen=True, slots=True)
class QueueShare:
    """One work queue: its share among those beside it (None = 0: it gets only what others leave).

    `active`: it has active tasks; of a partition that is not read, its sub queues decide. `partition`: name of the partition of a
    sub queue.
    """

    name: str
    share: float | None = None
    active: bool = False
    stretchable: bool = False
    is_partition: bool = False
    partition: str = ""


def percentages(queues: Sequence[QueueShare]) -> dict[str, float]:
    """Queue -> percent of all that it may use; what is not used by anybody stays undivided only where nobody is active."""
    subs: dict[str, list[QueueShare]] = {queue.name: [] for queue in queues if queue.is_partition}
    for queue in queues:
        if queue.partition:
            subs[queue.partition].append(queue)
    active = {q.name: any(s.active for s in subs[q.name]) if q.is_partition else q.active for q in queues}
    percent = _divided([q for q in queues if not q.partition], ALL, active)
    for partition, inside in subs.items():
        percent |= _divided(inside, percent[partition], active)
    return percent


def _divided(queues: Sequence[QueueShare], total: float, active: Mapping[str, bool]) -> dict[str, float]:
    """A total divided by share; what inactive queues leave goes to the stretchable active ones, else to all active ones."""
    parts = _by_share(queues, total)
    takers = [q for q in queues if active[q.name] and q.stretchable] or [q for q in queues if active[q.name]]
    left = max(total - sum(parts[q.name] for q in queues if active[q.name]), 0.0)  # of sums of parts a little more may come out
    more = _by_share(takers, left, alike_without=True)
    return {q.name: (parts[q.name] if active[q.name] else 0.0) + more.get(q.name, 0.0) for q in queues}


def _by_share(queues: Sequence[QueueShare], total: float, *, alike_without: bool = False) -> dict[str, float]:
    """A total in proportion to the shares; where nobody has one, nothing for each, or (`alike_without`) the same for each."""
    shares = {queue.name: max(queue.share or 0.0, 0.0) for queue in queues}
    whole = sum(shares.values())
    if not whole:
        return dict.fromkeys(shares, total / len(shares) if shares and alike_without else 0.0)
    return {name: total * share / whole for name, share in shares.items()}
