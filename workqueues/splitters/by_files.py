"""Cutting by the number of files: nFilesPerJob each, else as many as task and queue allow.

Source: facts on splitting 8.1, 8.2. The last, smaller chunk becomes a job only when nothing comes behind it. Not here: events,
sizes with output and work area, boundaries, secondary datasets (rows J4, J6, J12).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from workqueues.rules.split_rule import SplitRules
from workqueues.splitters.protocol import Files, JobPlan, QueueLimits, Split


def by_files(files: Files, rules: SplitRules, limits: QueueLimits, most: int | None = None) -> Split:
    """Jobs of nFilesPerJob files; without it of at most nMaxFilesPerJob or the queue's number of files, and the queue's bytes.

    nFilesPerJob replaces the queue's number of files and is never cut by bytes: where it does not fit, the queue's filters have
    said so. One file at least is always taken.
    """
    ceiling = rules.files_per_job or rules.max_files_per_job or limits.max_files
    sizes, events = _running_sum(files.sizes), _running_sum(files.n_events)
    end = len(files)
    if rules.files_per_job is None and limits.max_bytes is not None and sizes is not None:
        ends = _ends_by_bytes(sizes, ceiling, limits.max_bytes)
    else:
        ends = [*range(ceiling, end, ceiling), end] if end else []
    reason = ""
    if ends and not files.complete and end - (ends[-2] if len(ends) > 1 else 0) < ceiling:
        ends.pop()
        reason = f"the last files wait for more: a job takes {ceiling}"
    if most is not None and len(ends) > most:
        del ends[max(most, 0) :]
        reason = "as many jobs as were asked for"
    jobs = tuple(map(JobPlan, [0, *ends], ends, _between(events, ends), _between(sizes, ends)))
    return Split(jobs, end - (ends[-1] if ends else 0), reason)


def _ends_by_bytes(sizes: list[int], ceiling: int, max_bytes: int) -> list[int]:
    """Where each job ends, when a job takes neither more than `ceiling` files nor, with two files or more, more than
    `max_bytes`.
    """
    ends: list[int] = []
    start, end = 0, len(sizes) - 1
    while start < end:
        fitting = bisect_right(sizes, sizes[start] + max_bytes, start, end + 1) - 1
        start = max(start + 1, min(start + ceiling, fitting))
        ends.append(start)
    return ends


def _running_sum(column: Sequence[int]) -> list[int] | None:
    """Sums of the first 0, 1, 2, ... entries; None for an empty column."""
    return list(accumulate(column, initial=0)) if len(column) else None


def _between(sums: list[int] | None, ends: list[int]) -> list[int]:
    """The part of the sum that lies in each job."""
    if sums is None:
        return [0] * len(ends)
    at = [0, *(sums[stop] for stop in ends)]
    return [after - before for before, after in pairwise(at)]
