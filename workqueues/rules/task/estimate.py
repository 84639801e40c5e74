"""When a task may be done, from how fast its jobs finished of late: an estimate, told with what it is made from."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

LEAST_JOBS = 20
"""Finished jobs below which nothing is estimated."""
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Of a task: jobs that finished so far, those of them in the last hour, input files that are done, and those to come.

    `at_work_s`: for how much of that hour it has been at work.
    """

    jobs: int
    last_hour: int
    files: int
    files_to_come: int
    at_work_s: float = HOUR_S


@dataclass(frozen=True, slots=True)
class Estimate:
    """Jobs to come, and the seconds that they take at the rate of the last hour; `least_s` to `most_s` with its chance spread."""

    jobs_to_come: int
    files_per_job: float
    seconds: float
    least_s: float
    most_s: float


def estimate(pace: Pace) -> Estimate | None:
    """None where it would say nothing; `why_none` says why. A count of n jobs in an hour is uncertain by its square root."""
    if why_none(pace):
        return None
    files_per_job = pace.files / pace.jobs
    jobs_to_come = ceil(pace.files_to_come / files_per_job)
    spread = sqrt(pace.last_hour)
    at_rate = jobs_to_come * min(pace.at_work_s, HOUR_S)
    return Estimate(
        jobs_to_come,
        files_per_job,
        at_rate / pace.last_hour,
        at_rate / (pace.last_hour + spread),
        at_rate / max(pace.last_hour - spread, pace.last_hour / 4),
    )


def why_none(pace: Pace) -> str:
    """Why there is no estimate, in words; empty where there is one."""
    if not pace.files_to_come:
        return "no input file is left"
    if pace.jobs < LEAST_JOBS:
        return f"fewer than {LEAST_JOBS} jobs have finished"
    if not pace.files:
        return "no input file is done yet"
    if not pace.last_hour:
        return "no job finished in the last hour"
    return ""
