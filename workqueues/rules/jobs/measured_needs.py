"""What the jobs of a task need, by what its finished ones used. Pure.

Source: seed 001 (memory, IO intensity, HS06sPerEvent, DISKIO, tgtMaxOutputForNG), row J20; facts on the brokerage 9; decisions
H3, D23. What was not measured, or cannot be true, says nothing: the task keeps what it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite
from typing import Any

from workqueues.rules.jobs.memory_ladder import MOST_MB, is_per_core
from workqueues.rules.jobs.split_rule import SplitRules

CPU_FACTOR = WALLTIME_FACTOR = 1.5
"""Margin on what was measured."""
SHORTEST_CPU_S = 3600.0
"""Jobs that used less CPU time say nothing of the walltime for each MB."""
MOST_OUTPUT_KB = 10_000.0
"""The most output for each event, or MB of input, kB."""
LEAST_GB, MOST_GB = 1, 100
"""Bounds of the nGBPerJob that follows from outputs."""
SHORTEST_S, LONGEST_S = 1e-3, 100 * 86_400.0
"""A run that took less or more was measured wrongly."""
MOST_BYTES = 1e15
"""Files of a job are not larger together."""
KB, MB, GB = 1e3, 1e6, 1e9


@dataclass(frozen=True, slots=True)
class JobFigures:
    """What one finished job used: seconds, bytes, MB as named; None = not measured. `power` in HS06 of one core."""

    exec_s: float
    cores: int = 1
    power: float = 0.0
    n_events: int = 0
    cpu_s: float | None = None
    max_pss_mb: float | None = None
    input_bytes: float = 0.0
    output_bytes: float = 0.0
    largest_output_bytes: float = 0.0
    read_bytes: float | None = None
    written_bytes: float | None = None
    work_mb: float | None = None

    @property
    def cpu_percent(self) -> float | None:
        """How much of its cores it used, percent."""
        return None if self.cpu_s is None else 100.0 * self.cpu_s / self.exec_s / max(self.cores, 1)


@dataclass(frozen=True, slots=True)
class TaskNeeds:
    """What a task says that its jobs need, before they were measured; columns of the task."""

    ram_unit: str = "MB"
    base_ram_mb: float = 0.0
    cpu_time_unit: str = ""
    cpu_efficiency: float = 90.0
    base_walltime_s: float = 600.0
    walltime: float | None = None
    out_disk_unit: str = ""
    work_disk_mb: float = 0.0
    reads_files: bool = True


def percentile(values: Sequence[float], percent: float) -> float:
    """Linear interpolation at (n - 1) x p of the ordered values (decision A5). ValueError where there is none."""
    if not values:
        raise ValueError("there is no value")
    ordered = sorted(values)
    at = (len(ordered) - 1) * percent / 100.0
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def cpu_time(jobs: Iterable[JobFigures], base_s: float, efficiency: float, rank: float = 95.0) -> float | None:
    """HS06 s for each event: max(0, exec - base) x power x cores x efficiency / events of each job, the rank-th percentile x 1.5.

    None where no job had events. Source: seed 001, HS06sPerEvent (row J20).
    """
    used = [
        max(0.0, job.exec_s - base_s) * job.power * max(job.cores, 1) * efficiency / 100.0 / job.n_events
        for job in jobs
        if job.n_events > 0
    ]
    return percentile(used, rank) * CPU_FACTOR if used else None


def ram_count(max_pss_mb: Sequence[float], base_mb: float, cores: int) -> float:
    """MB for each of so many cores beside the base: by the largest job. Source: seed 001; decision H3."""
    return max(0.0, (max(max_pss_mb) - base_mb) / max(cores, 1))


def ram_count_by_rank(max_pss_mb: Sequence[float], base_mb: float, cores: int, rank: float, margin: float) -> float:
    """The same by a percentile of the jobs and a margin in percent. Source: facts on the brokerage 9; decision H3."""
    each = [ceil(max(0.0, (pss - base_mb) / max(cores, 1))) for pss in max_pss_mb]
    return percentile(each, rank) * (1.0 + margin / 100.0)


def io_intensity(in_kb: float, out_kb: float, wall_s: float, cores: int) -> float:
    """kB/s for each core: all input and output by walltime and cores. Source: seed 001, IO intensity."""
    return (in_kb + out_kb) / wall_s / max(cores, 1)


def disk_io(read_kb: float, written_kb: float, exec_s: float) -> float:
    """kB/s read and written on the local disk. Source: seed 001, column DISKIO."""
    return (read_kb + written_kb) / exec_s


def measure(jobs: Sequence[JobFigures], needs: TaskNeeds, rules: SplitRules, config: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of a task as its finished jobs show them, as far as they are `credible`; `gb_per_job` is the nGBPerJob that
    follows, no column.

    `config`: component dbproxy, with the keys SCOUT_*.
    """
    if not jobs:
        return {}
    return {
        **_memory(jobs, needs, config),
        **_cpu(jobs, needs, config),
        **_traffic(jobs, config),
        **_disk(jobs, needs, rules),
    }


def credible(jobs: Iterable[JobFigures]) -> list[JobFigures]:
    """Those jobs that ran at all, and not for ever, without figures that no job has: these were not measured."""
    return [_credible(job) for job in jobs if isfinite(job.exec_s) and SHORTEST_S <= job.exec_s <= LONGEST_S]


def _credible(job: JobFigures) -> JobFigures:
    return replace(
        job,
        cpu_s=_within(job.cpu_s, LONGEST_S * max(job.cores, 1)),
        max_pss_mb=_within(job.max_pss_mb, MOST_MB),
        input_bytes=_within(float(int(job.input_bytes)), MOST_BYTES) or 0.0,
        output_bytes=_within(float(int(job.output_bytes)), MOST_BYTES) or 0.0,
        largest_output_bytes=_within(float(int(job.largest_output_bytes)), MOST_BYTES) or 0.0,
        read_bytes=_within(job.read_bytes, MOST_BYTES),
        written_bytes=_within(job.written_bytes, MOST_BYTES),
        work_mb=_within(job.work_mb, MOST_MB),
    )


def _within(value: float | None, most: float) -> float | None:
    return value if value is not None and 0 <= value <= most else None


def _memory(jobs: Sequence[JobFigures], needs: TaskNeeds, config: Mapping[str, Any]) -> dict[str, Any]:
    peaks = [job.max_pss_mb for job in jobs if job.max_pss_mb]
    if not peaks or needs.ram_unit.endswith("Fixed"):
        return {}
    cores = max(job.cores for job in jobs) if is_per_core(needs.ram_unit) else 1
    if config["SCOUT_RAMCOUNT_METHOD"] == "percentile":
        rank, margin = config["SCOUT_RAMCOUNT_RANK"], config["SCOUT_RAMCOUNT_MARGIN"]
        measured = ram_count_by_rank(peaks, needs.base_ram_mb, cores, rank, margin)
    else:
        measured = ram_count(peaks, needs.base_ram_mb, cores)
    return {"ram_count": ceil(max(measured, config["SCOUT_RAMCOUNT_MIN"]))}


def _cpu(jobs: Sequence[JobFigures], needs: TaskNeeds, config: Mapping[str, Any]) -> dict[str, Any]:
    if needs.cpu_time_unit.endswith("Fixed"):
        return {}
    columns: dict[str, Any] = {}
    measured = cpu_time(
        [job for job in jobs if job.power > 0], needs.base_walltime_s, needs.cpu_efficiency, config["SCOUT_CPUTIME_RANK"]
    )
    if measured:  # runs no longer than the base time say nothing of an event
        milli = needs.cpu_time_unit.startswith("m")
        columns["cpu_time"] = measured * 1000.0 if milli else measured
        columns["cpu_time_unit"] = needs.cpu_time_unit or "HS06sPerEvent"
    largest_mb = max(job.input_bytes for job in jobs) / MB
    longest = max((job.cpu_s or 0.0 for job in jobs), default=0.0)
    if needs.reads_files and largest_mb > 0 and longest >= SHORTEST_CPU_S:
        per_mb = longest / largest_mb * WALLTIME_FACTOR
        columns["walltime"] = ceil(min(max(per_mb, needs.walltime or 0.0), LONGEST_S))
    return columns


def _traffic(jobs: Sequence[JobFigures], config: Mapping[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "io_intensity": max(io_intensity(j.input_bytes / KB, j.output_bytes / KB, j.exec_s, j.cores) for j in jobs),
        "io_intensity_unit": "kBPerS",
    }
    rates = [
        disk_io(job.read_bytes / KB, job.written_bytes / KB, job.exec_s)
        for job in jobs
        if job.read_bytes is not None and job.written_bytes is not None
    ]
    if rates:
        mean, most = sum(rates) / len(rates), config["SCOUT_DISK_IO_CAP"]
        columns |= {"disk_io": min(mean, most) if most else mean, "disk_io_unit": "kBPerS"}
    return columns


def _disk(jobs: Sequence[JobFigures], needs: TaskNeeds, rules: SplitRules) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    per_event = needs.out_disk_unit.endswith(("PerEvent", "PerEvents")) or not needs.reads_files
    scale: Callable[[JobFigures], float] = (lambda j: float(j.n_events)) if per_event else (lambda j: j.input_bytes / MB)
    scaled = [job for job in jobs if scale(job) > 0]
    if scaled:
        per_unit = {job.output_bytes / KB / scale(job): job for job in scaled}
        wanted = percentile([job.output_bytes / KB / scale(job) for job in scaled], 75.0)
        columns["out_disk_count"] = min(float(ceil(wanted)), MOST_OUTPUT_KB)
        columns["out_disk_unit"] = "kBPerEvent" if per_event else "kB"
        if rules.target_output_gb:
            typical = per_unit[min(key for key in per_unit if key >= wanted)]
            if gb := _gb_per_job(typical, rules.target_output_gb, _largest_work(jobs, needs)):
                columns["gb_per_job"] = gb
    work = _largest_work(jobs, needs)
    if work > needs.work_disk_mb:
        columns |= {"work_disk_count": float(ceil(work)), "work_disk_unit": "MB"}
    return columns


def _largest_work(jobs: Sequence[JobFigures], needs: TaskNeeds) -> float:
    """MB; what the task says itself where that is more."""
    return max([needs.work_disk_mb, *(job.work_mb for job in jobs if job.work_mb is not None)])


def _gb_per_job(job: JobFigures, target_gb: float, work_mb: float) -> int | None:
    """The nGBPerJob with which the largest output of a job like this gets the wanted size: input and all outputs, scaled, and the
    work area. Source: seed 001, tgtMaxOutputForNG (row J22); facts on the brokerage 9.
    """
    if job.largest_output_bytes <= 0:
        return None
    scaled_gb = (job.output_bytes + job.input_bytes) / GB * target_gb * GB / job.largest_output_bytes
    return max(LEAST_GB, min(int(scaled_gb + work_mb / 1e3), MOST_GB))
