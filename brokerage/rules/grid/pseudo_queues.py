"""Unified queues as pseudo-queues: one for each class of resources that fits their slots (facts on the brokerage 2.1, 5.4).

A unified queue (capability `ucore`) stays the name under which jobs are counted; jobs are brokered to its pseudo-queues
`QUEUE/CLASS`, which take a part of a slot each. Not here: the classes (`workqueues.rules.jobs.resource_type`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workqueues.rules.jobs.resource_type import RESOURCE_TYPES, ResourceType

UNIFIED = "ucore"
PER_SLOT = ("maxwdir",)
"""Columns that a smaller slot gets a part of."""
RESIZED = (*PER_SLOT, "corecount", "minrss", "maxrss")
"""Columns that a pseudo-queue has otherwise than its queue."""

Row = Mapping[str, Any]


def expanded(rows: Iterable[tuple[Row, str]]) -> Iterator[Row]:
    """Rows of `Queues`, each with its capability: a unified queue is replaced by its pseudo-queues, all others stay."""
    for row, capability in rows:
        if capability == UNIFIED:
            yield from (pseudo_queue(row, kind) for kind in RESOURCE_TYPES if fits(row, kind))
        else:
            yield row


def fits(row: Row, kind: ResourceType) -> bool:
    """Whether jobs of the class fit the slots; slots of any size (0) count as one core."""
    return _slot_cores(row) >= (kind.min_cores or 1)


def pseudo_queue(row: Row, kind: ResourceType) -> Row:
    """The pseudo-queue of a unified queue for one class that fits."""
    slot = _slot_cores(row)
    cores = max(kind.min_cores or 1, slot if kind.max_cores is None else min(slot, kind.max_cores))
    part = cores / slot
    return {
        **row,
        **{column: (row.get(column) or 0) * part for column in PER_SLOT},
        "name": f"{row['name']}/{kind.name}",
        "unified_name": row["name"],
        "corecount": cores,
        "minrss": _least_memory(row.get("minrss") or 0, kind.min_ram_per_core, cores, part),
        "maxrss": _most_memory(row.get("maxrss") or 0, kind.max_ram_per_core, cores, part),
    }


def _slot_cores(row: Row) -> int:
    return max(1, int(row.get("corecount") or 0))


def _least_memory(of_queue: float, per_core: int | None, cores: int, part: float) -> float:
    """The least memory of a job, MB: the class's own (just above the class below), or the queue's part of it."""
    if per_core is None:
        return max(of_queue * part, of_queue)
    return max(cores * per_core - cores + 1, of_queue * part)


def _most_memory(of_queue: float, per_core: int | None, cores: int, part: float) -> float:
    """The most memory of a job, MB: the smaller one of the class's and of the queue's part; 0 = no limit."""
    limits = [] if per_core is None else [float(cores * per_core)]
    if of_queue:
        limits += [of_queue * part] if limits else [of_queue * part, of_queue]
    return min(limits, default=0.0)
