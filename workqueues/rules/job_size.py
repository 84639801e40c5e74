"""How large a job is for nGBPerJob: input, output and work area together (facts on splitting 8.1; decision B5)."""

from __future__ import annotations

OUTPUT_FLOOR_GB = 2.5
"""The least room that splitting keeps for the output of a job."""


def job_size_gb(input_gb: float, output_ratio: float, work_gb: float) -> float:
    """Size of a job in GB, which must be less than nGBPerJob: input + the larger of 2.5 GB and its scaled output + work area.

    `output_ratio`: output per input. Source: seed 001, nGBPerJob.
    """
    return input_gb + max(OUTPUT_FLOOR_GB, input_gb * output_ratio) + work_gb
