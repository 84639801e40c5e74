"""How large a job is for nGBPerJob, and what that leaves for its files (facts on splitting 8.1; decisions B5, F3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

OUTPUT_FLOOR_GB = 2.5
"""The least room that splitting keeps for the output of a job."""

GB = 1e9


@dataclass(frozen=True, slots=True)
class Budget:
    """What the files of a job may cost together: their bytes and events, each with its price, at most `most`.

    `below`: less than that. A job of one file may cost more, as it cannot be made smaller.
    """

    per_byte: float
    per_event: float
    most: float
    below: bool = False


def job_size_gb(input_gb: float, output_ratio: float, work_gb: float) -> float:
    """Size of a job in GB, which must be less than nGBPerJob: input + the larger of 2.5 GB and its scaled output + work area.

    `output_ratio`: output per input. Source: seed 001, nGBPerJob.
    """
    return input_gb + max(OUTPUT_FLOOR_GB, input_gb * output_ratio) + work_gb


def size_budgets(n_gb_per_job: float, output_ratio: float, output_per_event_gb: float, work_gb: float) -> Iterator[Budget]:
    """Budgets in bytes that hold together exactly where the size of a job (`job_size_gb`) is less than nGBPerJob.

    One for each of what the output may be: the least room, or what scales with the input or with events.
    """
    left = n_gb_per_job - work_gb
    yield Budget(1.0, 0.0, (left - OUTPUT_FLOOR_GB) * GB, below=True)
    if output_ratio or output_per_event_gb:
        yield Budget(1.0 + output_ratio, output_per_event_gb * GB, left * GB, below=True)
