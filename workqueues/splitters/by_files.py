"""Cutting by the number of files and by what they cost: nFilesPerJob each, else as many as task and queue allow.

Source: facts on splitting 8.1, 8.2; decision F3: all limits bind together. The last, smaller chunk becomes a job only when
nothing comes behind it. Not here: events across files, boundaries, secondary datasets (rows J4, J6, J12).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from workqueues.rules.job_size import Budget
from workqueues.rules.split_rule import SplitRules
from workqueues.splitters.protocol import Files, JobLimits, JobPlan, Secondary, Split


def by_files(
    files: Files, rules: SplitRules, limits: JobLimits, most: int | None = None, secondaries: Sequence[Secondary] = ()
) -> Split:
    """Jobs of nFilesPerJob files, without it of at most nMaxFilesPerJob or the limit's number; fewer where a budget binds.

    One file at least is always taken.
    """
    ceiling = rules.files_per_job or rules.max_files_per_job or limits.max_files
    sizes, events = _running_sum(files.sizes), _running_sum(files.n_events)
    end = len(files)
    if limits.budgets:
        reach = [_reach(files, budget) for budget in limits.budgets]
        ends = _ends(end, ceiling, reach)
        full = not ends or any(at(ends[-2] if len(ends) > 1 else 0) < end for at in reach)
    else:
        ends = [*range(ceiling, end, ceiling), end] if end else []
        full = False
    reason = ""
    if ends and not files.complete and not full and end - (ends[-2] if len(ends) > 1 else 0) < ceiling:
        ends.pop()
        reason = f"the last files wait for more: a job takes {ceiling}"
    if most is not None and len(ends) > most:
        del ends[max(most, 0) :]
        reason = "as many jobs as were asked for"
    jobs = tuple(map(JobPlan, [0, *ends], ends, _between(events, ends), _between(sizes, ends)))
    return Split(jobs, end - (ends[-1] if ends else 0), reason, tuple(secondaries))


def _reach(files: Files, budget: Budget) -> Callable[[int], int]:
    """From the first file of a job to the end of what the budget allows; past the last file where more would fit."""
    count = len(files)
    sizes, events = files.sizes or [0] * count, files.n_events or [0] * count
    costs = list(
        accumulate((budget.per_byte * s + budget.per_event * e for s, e in zip(sizes, events, strict=True)), initial=0.0)
    )
    bisect = bisect_left if budget.below else bisect_right

    def reach(start: int) -> int:
        return bisect(costs, costs[start] + budget.most, start) - 1

    return reach


def _ends(end: int, ceiling: int, reach: Sequence[Callable[[int], int]]) -> list[int]:
    """Where each job ends, when it takes no more than `ceiling` files and no more than its budgets allow."""
    ends: list[int] = []
    start = 0
    while start < end:
        start = max(start + 1, min(start + ceiling, end, *(at(start) for at in reach)))
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
