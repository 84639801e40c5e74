"""Cutting a task without input: one numbered pseudo file a job. Source: seed 001, "Pseudo datasets and files"; facts on
splitting 8.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from workqueues.rules.split_rule import SplitRules
from workqueues.splitters.protocol import Files, JobLimits, JobPlan, Secondary, Split


def pseudo(
    files: Files, rules: SplitRules, limits: JobLimits, most: int | None = None, secondaries: Sequence[Secondary] = ()
) -> Split:
    """One job a pseudo file, with the file's events, else the task's events a job; no limit of a queue applies to a record."""
    count = len(files) if most is None else min(len(files), most)
    events = files.n_events or [rules.events_per_job or 0] * count
    jobs = tuple(JobPlan(i, i + 1, events[i]) for i in range(count))
    left = len(files) - count
    return Split(jobs, left, "as many jobs as were asked for" if left else "", tuple(secondaries))
