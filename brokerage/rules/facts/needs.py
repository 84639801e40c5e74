"""What one job of an ask needs at a queue: memory, scratch disk, walltime; and the work that remains of a task.

One formula each, for a number as for a column. Units: MB and GB are decimal (decision A4), seconds, HS06. Sources are named per
function. What is compared with these figures, and how, is for the filters of each policy.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.columns import Floats, Ints
from brokerage.rules.facts.snapshot import Queues

UNKNOWN_CPU_TIME = 300.0
"""HS06 s per event of a task that gives none."""

LEAST_WORK = 50.0
"""Work below this counts as 1 in the weight of a nucleus."""


def hs06_s_per_event(cpu_time: float | None, unit: str | None) -> float | None:
    """What an event takes; units that begin with m are thousandths (facts on the brokerage 9). None where it is not known."""
    if not cpu_time:
        return None
    return cpu_time / 1000.0 if (unit or "").startswith("mHS") else cpu_time


def remaining_work(n_events: int, n_events_used: int, cpu_time: float | None, unit: str | None = None) -> float:
    """RW of a task: events of its master dataset that no job has used yet, times what one takes."""
    per_event = hs06_s_per_event(cpu_time, unit)
    return max(n_events - n_events_used, 0) * (UNKNOWN_CPU_TIME if per_event is None else per_event)


Figure = TypeVar("Figure", float, Floats)

CPU_EFFICIENCY = 90.0
BASE_WALLTIME_S = 600.0
"""Defaults of a task that gives neither (seed 001, scouts)."""

_SIZE_MB = {"kb": 1e-3, "mb": 1.0, "gb": 1e3}


def task_cores(ask: Ask) -> int:
    """Cores that a job of the task asks for: none given is one; 0 = any number stays 0."""
    return 1 if ask.core_count is None else ask.core_count


def slot_cores(ask: Ask, corecount: Ints) -> Ints:
    """Cores that a job gets at each queue: those of the slot, else those that the task asks for, at least one."""
    return np.where(corecount > 0, corecount, max(task_cores(ask), 1))


def cores_at(ask: Ask, queues: Queues) -> Floats:
    """The same for all queues of a snapshot, computed once per number of cores."""
    cores = max(task_cores(ask), 1)
    return queues.derived(("cores", cores), lambda table: slot_cores(ask, table.corecount).astype(np.float64), ("corecount",))


def per_core(ask: Ask) -> bool:
    """Whether the memory of the task is counted per core; plain MB never is (decision B4)."""
    return (ask.ram_unit or "MB").startswith("MBPerCore")


def memory_mb(ask: Ask, cores: Ints | Floats) -> Floats:
    """Memory of a whole job, MB.

    Base + ram x cores, or base + ram in plain MB (seed 000; decision B4), before any compensation.
    """
    ram, base = ask.ram_count or 0.0, ask.base_ram_count or 0.0
    cores = cores if per_core(ask) else np.ones(len(cores))
    need: Floats = base + ram * cores.astype(np.float64, copy=False)
    return need


def size_mb(count: float | None, unit: str | None) -> float:
    """A disk count in MB; its unit begins with kB, MB or GB (any case), else it is MB."""
    return (count or 0.0) * _SIZE_MB.get((unit or "MB")[:2].lower(), 1.0)


def output_per_event(ask: Ask) -> bool:
    """Whether the size of the output is given per event."""
    return (ask.out_disk_unit or "").endswith(("PerEvent", "PerEvents"))


def output_mb(ask: Ask, n_events: int, input_mb: float) -> float:
    """Size of the output of a job, MB; it scales with events where its unit is per event, else with the input."""
    return size_mb(ask.out_disk_count, ask.out_disk_unit) * (n_events if output_per_event(ask) else input_mb)


def scaled_need_mb(ask: Ask, queues: Queues, floor_mb: float) -> Floats:
    """Scratch disk of a job at each queue, MB: input, unless it is read directly, + output (`floor_mb` at least) + work.

    Output scales with events where its unit is per event, else with the input, read directly or not (seed 000; decision B5).
    """
    input_mb = ask.chunk.largest_gb * 1000.0
    rest = max(floor_mb, output_mb(ask, ask.chunk.n_events, input_mb)) + size_mb(ask.work_disk_count, ask.work_disk_unit)
    return queues.copies_input * input_mb + rest


def walltime_s(cpu_time: float, n_events: int, power: Figure, efficiency: float, base_s: float) -> Figure:
    """Expected walltime, s: cpuTime x events / (power x efficiency) + base (seed 000); efficiency 0 % = base only (seed 001).

    cpu_time in HS06 s per event, power of the whole slot in HS06, efficiency in percent.
    """
    if efficiency == 0:
        return power * 0.0 + base_s
    return cpu_time * n_events / (power * efficiency / 100.0) + base_s


def efficiency_and_base(ask: Ask) -> tuple[float, float]:
    """CPU efficiency, percent, and base walltime, s; those of seed 001 where the task gives none."""
    efficiency = CPU_EFFICIENCY if ask.cpu_efficiency is None else ask.cpu_efficiency
    return efficiency, BASE_WALLTIME_S if ask.base_walltime is None else ask.base_walltime


def job_walltime_s(ask: Ask, n_events: int, power: Figure) -> Figure | None:
    """Expected walltime of a job with so many events in slots of this power, s; None where the task gives no cpuTime."""
    cpu_time = hs06_s_per_event(ask.cpu_time, ask.cpu_time_unit)
    if cpu_time is None:
        return None
    return walltime_s(cpu_time, n_events, power, *efficiency_and_base(ask))


def walltime_at(ask: Ask, queues: Queues) -> Floats | None:
    """Expected walltime of a job of the chunk at each queue, s: the task's own figure, else from its cpuTime, else None."""
    events = ask.chunk.n_events
    need = (ask.walltime_s, ask.cpu_time, ask.cpu_time_unit, ask.cpu_efficiency, ask.base_walltime, events, task_cores(ask))

    def walltime(table: Queues) -> Floats | None:
        power = slot_power(ask, table)
        return np.full(len(power), ask.walltime_s) if ask.walltime_s else job_walltime_s(ask, events, power)

    return queues.derived(("walltime", need), walltime, ("corecount", "corepower"))


def slot_power(ask: Ask, queues: Queues) -> Floats:
    """HS06 of what a job gets at each queue, computed once per number of cores."""
    cores = max(task_cores(ask), 1)
    return queues.derived(("power", cores), lambda table: cores_at(ask, table) * table.power, ("corecount", "corepower"))
