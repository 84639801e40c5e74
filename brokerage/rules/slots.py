"""How many more jobs may wait at a queue, and the requirements that a job states there. Source: facts on splitting 8.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from brokerage.rules.ask import Ask
from brokerage.rules.needs import memory_mb, size_mb, slot_cores
from brokerage.rules.snapshot import Queues

RAM_STEP_MB, DISK_STEP_MB, WALLTIME_STEP_S = 100, 500, 600
"""Requirements are rounded up to these, so that jobs of nearly equal needs share a task queue."""


class Slot(NamedTuple):
    """What a job asks of a pilot: cores, MB, MB, s; 0 = no demand."""

    core_count: int
    ram_mb: int
    disk_mb: int
    walltime_s: int


def cap(running: int, lower_limit: int) -> int:
    """Jobs that may be queued at a queue: twice those that run, but never less than the lower limit."""
    return max(2 * running, lower_limit)


def queued(queues: Queues, row: int) -> int:
    """Jobs at a queue that do not run yet."""
    return int(queues.defined[row] + queues.assigned[row] + queues.activated[row] + queues.starting[row])


def room(queues: Queues, lower_limit: int, given: Mapping[str, int]) -> dict[str, int]:
    """Queue -> jobs that may still be made for it, after those `given` since the snapshot."""
    names: list[str] = queues.name.tolist()
    return {
        name: max(cap(int(queues.running[row]), lower_limit) - queued(queues, row) - given.get(name, 0), 0)
        for row, name in enumerate(names)
    }


def slot(ask: Ask, queues: Queues, row: int, input_bytes: int, walltime_s: float | None) -> Slot:
    """The requirements of one job of the ask at the queue in `row`, with so much input, rounded up within the queue's limits."""
    here = slice(row, row + 1)
    cores = int(slot_cores(ask, queues.corecount[here])[0]) if ask.core_count == 0 else max(ask.core_count or 1, 1)
    ram = float(memory_mb(ask, slot_cores(ask, queues.corecount[here]))[0])
    disk = input_bytes / 1e6 + size_mb(ask.work_disk_count, ask.work_disk_unit)
    return Slot(
        cores,
        _up(ram, RAM_STEP_MB, float(queues.maxrss[row])),
        _up(disk, DISK_STEP_MB, float(queues.maxwdir[row])),
        _up(walltime_s or 0.0, WALLTIME_STEP_S, float(queues.maxtime[row])),
    )


def _up(need: float, step: int, limit: float) -> int:
    rounded = -(-int(-(-need // 1)) // step) * step
    return int(min(rounded, limit)) if 0 < limit < rounded and need <= limit else rounded
