"""More memory for the next try of what ran out of it, step by step. Source: seed 001, memory increase in job retry. Pure."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, isfinite

STEPS = (1000, 2000, 3000, 4000, 6000, 8000)
"""MB, or MB a core where the task counts so."""

RAISE_PERCENT, RAISE_FROM = 30.0, 10
"""Percent of the ended jobs of a task that ran out of memory from which the task asks for more, once so many have ended."""

MOST_MB = 1e7
"""What a pilot measured above this is no measurement."""


def is_per_core(unit: str) -> bool:
    """Whether memory in this unit is counted for each core."""
    return unit.startswith("MBPerCore")


def asked_for(ram_mb: float, compensation: float, unit: str, base_mb: float, cores: int) -> int:
    """The ramCount with which a job got so much memory: that of the whole job, MB, `compensation` taken into it."""
    whole = ram_mb / compensation
    return max(round((whole - base_mb) / max(cores, 1) if is_per_core(unit) else whole - base_mb), 0)


def next_step(max_pss: float, ram_count: float, unit: str, base_mb: float, cores: int) -> float:
    """The ramCount of the next try: the first step above what was used and what was asked for, unchanged where none is above.

    `max_pss`: the most that the job used, MB; nonsense counts as not measured. Source: seed 001, memory increase in job retry
    (row J21); decision D5.
    """
    need = _need(max_pss, unit, base_mb, cores)
    return next((step for step in STEPS if step > max(need, ram_count)), ram_count)


NextStep = Callable[[float, float, str, float, int], float]
"""What `next_step` is: the ramCount of the next try."""


def own_steps(offset: int, step: int, most: int) -> NextStep:
    """`next_step` by what a task says itself: its retryRamOffset, retryRamStep and retryRamMax, in its unit; 0: not said.

    `offset`, and so many steps above it as are needed to be above what was used and what was asked for, at most `most`; unchanged
    where that is no more than was asked for. Source: facts on task parameters 2, on commands and retry 3.3.
    """

    def next_step_of_task(max_pss: float, ram_count: float, unit: str, base_mb: float, cores: int) -> float:
        floor_mb = max(_need(max_pss, unit, base_mb, cores), ram_count)
        more: float = offset
        if more <= floor_mb and step:
            more = offset + (floor((floor_mb - offset) / step) + 1) * step
        return max(min(more, most or more, MOST_MB), ram_count)

    return next_step_of_task


def _need(max_pss: float, unit: str, base_mb: float, cores: int) -> float:
    """The most that a job used, in the unit of its task; nonsense counts as nothing."""
    used = max_pss if isfinite(max_pss) and 0 <= max_pss <= MOST_MB else 0.0
    return (used - base_mb) / max(cores, 1) if is_per_core(unit) else used


def raises_task(n_failed_memory: int, n_jobs: int, least: int = RAISE_FROM) -> bool:
    """Whether so many of the ended jobs, at least `least`, ran out of memory that the whole task asks for more (row J21;
    decision D5).
    """
    return n_jobs >= least and 100.0 * n_failed_memory >= RAISE_PERCENT * n_jobs
