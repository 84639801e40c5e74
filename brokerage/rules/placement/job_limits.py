"""What one job of a task may take at a queue: the limits of the task and those of the slots there.

Source: facts on splitting 8.1; decision F3. Not here: cutting by them (`workqueues.splitters`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.needs import (
    efficiency_and_base,
    hs06_s_per_event,
    output_per_event,
    scaled_need_mb,
    size_mb,
    slot_power,
)
from brokerage.rules.facts.snapshot import Queues
from workqueues.rules.jobs.job_size import SCRATCH_FLOOR_GB, Budget, disk_budgets, size_budgets, walltime_budget
from workqueues.splitters.protocol import JobLimits

GB_IN_MB = 1000.0
UNKNOWN_GB = 20.0
"""Size of a job where neither task nor queue says anything of it."""

HOUR_S = 3600.0


def limits_of_task(ask: Ask, max_files: int) -> JobLimits:
    """What a job may take wherever it runs: nGBPerJob. `max_files`: where the task does not say."""
    if not ask.n_gb_per_job:
        return JobLimits(max_files)
    ratio, per_event_gb, work_gb = _sizes(ask)
    return JobLimits(max_files, budgets=tuple(size_budgets(ask.n_gb_per_job, ratio, per_event_gb, work_gb)))


def limits_at(ask: Ask, queues: Queues, row: int, of_task: JobLimits, *, sized: bool) -> JobLimits:
    """The same at one queue, with its scratch disk and walltime. `sized`: the task says how much a job takes.

    `ask` as the policy prepared it. Where nothing is known of how large a job may be, 20 GB are.
    """
    budgets = (*of_task.budgets, *_disk(ask, queues, row), *_walltime(ask, queues, row))
    if not (budgets or sized):
        budgets = tuple(size_budgets(UNKNOWN_GB, *_sizes(ask)))
    return replace(of_task, budgets=budgets)


def _sizes(ask: Ask) -> tuple[float, float, float]:
    """Output per input, output per event in GB, work area in GB."""
    made_mb = size_mb(ask.out_disk_count, ask.out_disk_unit)
    work_gb = size_mb(ask.work_disk_count, ask.work_disk_unit) / GB_IN_MB
    return (0.0, made_mb / GB_IN_MB, work_gb) if output_per_event(ask) else (made_mb, 0.0, work_gb)


def _disk(ask: Ask, queues: Queues, row: int) -> Iterator[Budget]:
    """Scratch disk: the part of a core, as the production broker compares it; where the smallest job needs more, all of it."""
    whole_mb = float(queues.maxwdir[row])
    if whole_mb:
        core_mb = float(queues.scratch_per_core[row])
        least_mb = float(scaled_need_mb(ask, queues, SCRATCH_FLOOR_GB * GB_IN_MB)[row])
        most_gb = (core_mb if least_mb < core_mb else whole_mb) / GB_IN_MB
        ratio, per_event_gb, work_gb = _sizes(ask)
        yield from disk_budgets(most_gb, ratio, per_event_gb, work_gb, not queues.direct_access_lan[row])


def _walltime(ask: Ask, queues: Queues, row: int) -> Iterator[Budget]:
    """The walltime of the queue, which is kept, and the one that the task wants (maxWalltime)."""
    per_event = hs06_s_per_event(ask.cpu_time, ask.cpu_time_unit) or 0.0
    efficiency, base_s = efficiency_and_base(ask)
    power = float(slot_power(ask, queues)[row])
    wanted_s = (ask.max_walltime_h or 0.0) * HOUR_S
    for limit_s, hard in ((float(queues.maxtime[row]), True), (wanted_s, False)):
        if per_byte := walltime_per_byte(ask):
            if limit_s:
                yield Budget(per_byte, 0.0, limit_s, hard=hard, what="walltime")
        elif budget := walltime_budget(per_event, power, efficiency, base_s, limit_s, hard):
            yield budget


def walltime_per_byte(ask: Ask) -> float:
    """Seconds for each byte of input, where the task gives its walltime so; 0 where it follows from events."""
    largest = ask.chunk.largest_gb * 1e9
    return ask.walltime_s / largest if ask.walltime_s and largest else 0.0
