"""Cutting by the number of files: nFilesPerJob each, else as many as task and queue allow.

Source: facts on splitting 8.1, 8.2. The last, smaller chunk becomes a job only when nothing comes behind it. Not here: events,
sizes with output and work area, boundaries, secondary datasets (rows J4, J6, J12).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from workqueues.rules.split_rule import SplitRules
from workqueues.splitters.protocol import Files, JobPlan, QueueLimits, Split


def by_files(files: Files, rules: SplitRules, limits: QueueLimits, most: int | None = None) -> Split:
    """Jobs of nFilesPerJob files; without it of at most nMaxFilesPerJob or the queue's number of files, and the queue's bytes.

    nFilesPerJob replaces the queue's number of files and is never cut by bytes: where it does not fit the queue's filters have
    said so. One file at least is always taken.
    """
    wanted = rules.files_per_job
    ceiling = wanted or rules.max_files_per_job or limits.max_files
    before = _running_sum(files.sizes)
    events = _running_sum(files.n_events)
    cut_bytes = limits.max_bytes if wanted is None and before is not None else None
    jobs: list[JobPlan] = []
    start, end = 0, len(files)
    while start < end and (most is None or len(jobs) < most):
        stop = min(start + ceiling, end)
        if cut_bytes is not None and before is not None:
            stop = max(start + 1, min(stop, bisect_right(before, before[start] + cut_bytes, start, end + 1) - 1))
        if stop == end and end - start < ceiling and not files.complete:
            return Split(tuple(jobs), end - start, f"{end - start} files wait for more: a job takes {ceiling}")
        jobs.append(JobPlan(start, stop, _between(events, start, stop), _between(before, start, stop)))
        start = stop
    return Split(tuple(jobs), end - start, "as many jobs as were asked for" if start < end else "")


def _running_sum(column: Sequence[int]) -> list[int] | None:
    """Sums of the first 0, 1, 2, ... entries; None for an empty column."""
    return list(accumulate(column, initial=0)) if len(column) else None


def _between(sums: list[int] | None, start: int, stop: int) -> int:
    return sums[stop] - sums[start] if sums is not None else 0
