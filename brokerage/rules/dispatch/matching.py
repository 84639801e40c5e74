"""Which waiting work suits a pilot, and in which order it is offered.

A task queue is a group of jobs with the same requirement; the ledger tries the task queues in the order given here and takes the
first job that it can lease. Not here: where shares stand (`workqueues.rules.shares.usage`), and limits between owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Requirement(NamedTuple):
    """What every job of a task queue needs.

    The computing queue it was brokered to, and the whole job's resources; 0 = no demand.
    """

    queue: str
    cores: int = 1
    memory_mb: int = 0
    disk_mb: int = 0
    walltime_s: int = 0
    vo: str = ""


class Resource(NamedTuple):
    """What a pilot offers now: its queue and what is left of its slot; 0 = unknown, which sets no condition."""

    queue: str
    cores: int = 1
    memory_mb: int = 0
    disk_mb: int = 0
    walltime_s: int = 0
    vo: str = ""


class WaitingQueue(NamedTuple):
    """A task queue with waiting jobs: its id, requirement, the priority of its best waiting job, and the label of all of them.

    `place`: that of its share, the least is served first; `job_id`: the oldest waiting job of that priority.
    """

    id: int
    requirement: Requirement
    priority: int
    place: float = 0.0
    label: str = ""
    job_id: int = 0


def rank(waiting: WaitingQueue) -> tuple[float, int, int]:
    """Where a task queue stands among those that suit a pilot; the least comes first.

    By its share, then highest priority of a waiting job, then the lowest id of such a job (facts on shares 6.1).
    """
    return waiting.place, -waiting.priority, waiting.job_id


def fitting(task_queues: Iterable[WaitingQueue], pilot: Resource) -> Iterator[WaitingQueue]:
    """Those that suit the pilot, in the order given, each looked at only when it is asked for."""
    queue, cores, memory, disk, walltime, vo = (pilot.queue, *(has or _ANY for has in pilot[1:5]), pilot.vo)
    for waiting in task_queues:
        need = waiting.requirement
        if (
            need.queue == queue
            and need.cores <= cores
            and need.memory_mb <= memory
            and need.disk_mb <= disk
            and need.walltime_s <= walltime
            and (not vo or need.vo == vo)
        ):
            yield waiting


_ANY = float("inf")
