"""The limits of retries of a task, judged at its retry. Pure. Source: decision D20; facts on commands and retry 3.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

LIMITS = (
    "TASK_MAX_ATTEMPT", "MAX_FAILED_HEP_SCORE_HOURS", "MAX_FAILED_HEP_SCORE_RATE", "MAX_JOB_FAILURE_RATE", "JOB_MAX_ATTEMPT",
    "MIN_CPU_EFFICIENCY",
)  # fmt: skip
"""Names of the keys of the component retry_task, without the source label, in the order in which they are judged."""

JOB_FIGURES = frozenset(LIMITS) - {"TASK_MAX_ATTEMPT", "JOB_MAX_ATTEMPT"}
"""Those that look at the jobs of the task."""


class RetryFigures(NamedTuple):
    """What the limits look at: retries so far, jobs and their work (hours x cores x power), the efficiency of the middle job in
    percent (None: not measured), and the most tries that a file of the task may have.
    """

    attempt_nr: int
    n_finished: int = 0
    n_failed: int = 0
    work_finished: float = 0.0
    work_failed: float = 0.0
    cpu_percent: float | None = None
    max_attempt: int = 0


class RetryExcess(NamedTuple):
    """The limit that a task is beyond, in words, and whether it is exhausted therefore; else it stays what it was."""

    reason: str
    exhausts: bool = True


def retry_excess(figures: RetryFigures, limits: Mapping[str, float | None], label: str) -> RetryExcess | None:
    """The first limit beyond which the task is; None: it may be retried. A limit that is not set is none."""
    for name in LIMITS:
        limit = limits.get(name)
        if limit and (why := _beyond(name, limit, figures)):
            return RetryExcess(f"{why} ({name}_{label})", name != "JOB_MAX_ATTEMPT")
    return None


def _beyond(name: str, limit: float, figures: RetryFigures) -> str:
    """Why the task is beyond this limit; empty where it is not."""
    jobs = figures.n_finished + figures.n_failed
    work = figures.work_finished + figures.work_failed
    if name == "TASK_MAX_ATTEMPT" and figures.attempt_nr >= limit:
        return f"it was retried {figures.attempt_nr} times, the limit is {limit:g}"
    if name == "MAX_FAILED_HEP_SCORE_HOURS" and figures.work_failed >= limit:
        return f"its failed jobs used {figures.work_failed:.4g} HEP-score hours, the limit is {limit:g}"
    if name == "MAX_FAILED_HEP_SCORE_RATE" and work > 0 and figures.work_failed / work >= limit:
        return f"its failed jobs did {figures.work_failed / work:.0%} of the work, the limit is {limit:.0%}"
    if name == "MAX_JOB_FAILURE_RATE" and jobs and figures.n_failed / jobs >= limit:
        return f"{figures.n_failed} of its {jobs} jobs failed, the limit is {limit:.0%}"
    if name == "JOB_MAX_ATTEMPT" and figures.max_attempt >= limit:
        return f"a file of it may have {figures.max_attempt} tries already, the limit is {limit:g}"
    if name == "MIN_CPU_EFFICIENCY" and figures.cpu_percent is not None and figures.cpu_percent < limit:
        return f"its jobs used {figures.cpu_percent:.0f} % of their cores, the limit is {limit:g} %"
    return ""
