"""How large a job may be: what its bytes and events cost, and how much of that there is (facts on splitting 8.1; seeds 000, 001;
decisions B5, F3).

Units: GB are decimal (decision A4), seconds, HS06. Here: the sums. Not here: cutting files by them (`workqueues.splitters`), and
which of them hold for a task at a queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

OUTPUT_FLOOR_GB = 2.5
"""The least room that nGBPerJob keeps for the output of a job (seed 001)."""

SCRATCH_FLOOR_GB = 0.5
"""The least room for output on the scratch disk of a slot (seed 000; decision B5)."""

GB = 1e9


@dataclass(frozen=True, slots=True)
class Budget:
    """What the input of a job may cost together: its bytes and events, each with its price, at most `most`.

    `below`: less than that. A job that cannot be made smaller may cost more, unless the budget is `hard`: then no job is made.
    `what` is counted, in words, for the reason.
    """

    per_byte: float
    per_event: float
    most: float
    below: bool = False
    hard: bool = False
    what: str = "size"


def job_size_gb(input_gb: float, output_ratio: float, work_gb: float) -> float:
    """Size of a job in GB, which must be less than nGBPerJob: input + the larger of 2.5 GB and its scaled output + work area.

    `output_ratio`: output per input. Source: seed 001, nGBPerJob.
    """
    return input_gb + max(OUTPUT_FLOOR_GB, input_gb * output_ratio) + work_gb


def size_budgets(n_gb_per_job: float, output_ratio: float, output_per_event_gb: float, work_gb: float) -> Iterator[Budget]:
    """Budgets in bytes that hold together exactly where the size of a job (`job_size_gb`) is less than nGBPerJob.

    Not hard: the document takes one file at least.
    """
    room = Budget(1.0, 0.0, n_gb_per_job - work_gb, below=True, what="nGBPerJob")
    yield from _with_output(room, OUTPUT_FLOOR_GB, output_ratio, output_per_event_gb)


def disk_budgets(
    max_gb: float, output_ratio: float, output_per_event_gb: float, work_gb: float, copies_input: bool
) -> Iterator[Budget]:
    """Hard budgets in bytes: input, unless it is read directly, + output (half a GB at least) + work area is less than `max_gb`.

    `max_gb`: scratch disk of the job at a queue, 0 = no limit. Output scales with the input, read directly or not
    (`output_ratio`), or with events. Source: seed 000, scratch disk; facts on splitting 8.1 (disk); decision B5.
    """
    if max_gb:
        room = Budget(1.0 if copies_input else 0.0, 0.0, max_gb - work_gb, below=True, hard=True, what="scratch disk")
        yield from _with_output(room, SCRATCH_FLOOR_GB, output_ratio, output_per_event_gb)


def _with_output(room: Budget, floor_gb: float, ratio: float, per_event_gb: float) -> Iterator[Budget]:
    """One budget in bytes for each of what the output may be: the least room, or what scales with the input or with events.

    `room`: what input costs per byte, and the GB that input and output may have.
    """
    byte, most = room.per_byte, room.most
    yield Budget(byte, 0.0, (most - floor_gb) * GB, room.below, room.hard, room.what)
    if ratio or per_event_gb:
        yield Budget(byte + ratio, per_event_gb * GB, most * GB, room.below, room.hard, room.what)


def walltime_budget(
    cpu_time_hs06s: float, power_hs06: float, efficiency_percent: float, base_s: float, limit_s: float, hard: bool = True
) -> Budget | None:
    """Events of a job so that base + cpuTime x events / (power x efficiency) is less than the limit, s.

    `cpu_time_hs06s`: HS06 s per event, 0 = not known; `power_hs06`: of the whole slot (cores x corepower), above 0; `limit_s`:
    0 = none. None where events set no limit: with an efficiency of 0 the base is all (seed 001). Sources: seed 000, walltime;
    facts on splitting 8.1.
    """
    if not (cpu_time_hs06s and efficiency_percent and limit_s):
        return None
    per_event = cpu_time_hs06s / (power_hs06 * efficiency_percent / 100.0)
    return Budget(0.0, per_event, limit_s - base_s, below=True, hard=hard, what="walltime")
