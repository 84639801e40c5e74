"""Cutting by the number of files and by what they cost: nFilesPerJob each, else as many as task and queue allow.

Source: facts on splitting 8.1, 8.2; decision F3: all limits bind together. The last, smaller chunk becomes a job only when
nothing comes behind it. Files are never cut here: `by_events` does that.
A task without input has numbered pseudo files, one a job (seed 001, "Pseudo datasets and files"; facts on splitting 8.3).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.costs import lines, running
from workqueues.splitters.cutter import (
    AS_MANY,
    Bounds,
    Cutter,
    Ground,
    LimitExcess,
    NoJob,
    bounds_of,
    ceiling_of,
    first_pieces,
    too_large,
    waiting,
)
from workqueues.splitters.protocol import Files, JobLimits, JobPlan, Secondary, Split
from workqueues.splitters.runs import run_ends, unit_ends
from workqueues.splitters.secondaries import Stocks


def by_files(
    files: Files, rules: SplitRules, limits: JobLimits, most: int | None = None, secondaries: Sequence[Secondary] = ()
) -> Split:
    """Jobs of nFilesPerJob files, without it of at most nMaxFilesPerJob or the limit's number; fewer where a limit binds.

    One file at least is always taken, or one boundary where these are not split, unless a hard budget forbids it.
    """
    units = unit_ends(files, rules)
    plain = units is None and not rules.skip_short_output
    seen = first_pieces(files, most, ceiling_of(rules, limits)) if plain else files
    sizes, events = running(seen.sizes, len(seen)), running(seen.n_events, len(seen))
    ground = Ground(seen, sizes, events, run_ends(seen, rules), units)
    bounds = bounds_of(rules, limits, lines(limits.budgets, sizes, events))
    behind = len(files) - len(seen)
    if plain and not secondaries:
        return _plain(ground, bounds, most, behind)
    return Cutter(ground, bounds, Stocks(secondaries, seen, rules)).split(most, behind)


def _plain(ground: Ground, bounds: Bounds, most: int | None, behind: int) -> Split:
    """What the general way of cutting gives where there are only files, in a fraction of the time."""
    n, ceiling = len(ground.pieces), bounds.max_files
    jobs = n if most is None else max(most, 0)
    if bounds.lines or len(ground.ends) > 1:
        ends, why = _ends(ground, bounds, jobs)
    else:
        ends, why = ([*range(ceiling, n, ceiling), n] if n else [])[:jobs], None
    last = ends[-2] if len(ends) > 1 else 0
    if ends and ends[-1] == n and not ground.pieces.complete and n - last < ceiling and bounds.allow(last, n):
        ends.pop()
        why = waiting(bounds)
    left = n - (ends[-1] if ends else 0) + behind
    if left and why is None:
        why = NoJob(AS_MANY)
    plans = map(JobPlan, [0, *ends], ends, _between(ground.events, ends), _between(ground.sizes, ends))
    return Split(tuple(plans), left, why.reason if why else "", unfit=why is not None and why.unfit)


def _ends(ground: Ground, bounds: Bounds, jobs: int) -> tuple[list[int], NoJob | None]:
    """Where each of at most so many jobs ends, and why there are no more if a hard budget is the reason."""
    columns = {id(line.sums): (line.sums, line.most) for line in sorted(bounds.lines, key=lambda line: -line.most)}
    costs, runs, n = list(columns.values()), iter(ground.ends), len(ground.pieces)
    ends: list[int] = []
    start = run = 0
    while start < n and len(ends) < jobs:
        while run <= start:
            run = next(runs)
        stop = min(start + bounds.max_files, run)
        for sums, most in costs:
            stop = bisect_right(sums, sums[start] + most, start, stop + 1) - 1
        if stop <= start:
            if broken := [line for line in bounds.lines if line.hard and line.reach(start) <= start]:
                return ends, too_large(LimitExcess(broken[0].what, True))
            stop = start + 1
        ends.append(stop)
        start = stop
    return ends, None


def _between(sums: list[int], ends: list[int]) -> list[int]:
    """The part of the sum that lies in each job."""
    at = [0, *(sums[stop] for stop in ends)]
    return [after - before for before, after in pairwise(at)]


def pseudo(
    files: Files, rules: SplitRules, limits: JobLimits, most: int | None = None, secondaries: Sequence[Secondary] = ()
) -> Split:
    """One job a pseudo file, with the file's events, else the task's events a job, and its part of the secondary datasets.

    Of the limits only hard budgets hold: a record cannot be made smaller, and it is no file that is read.
    """
    seen = first_pieces(files, most, 1)
    n = len(seen)
    events = running([known or rules.events_per_job or 0 for known in seen.n_events or [0] * n], n)
    sizes = [0] * (n + 1)
    hard = lines((budget for budget in limits.budgets if budget.hard), sizes, events)
    bounds = Bounds(1, limits.max_inputs, hard, asked_files=1)
    stocks = Stocks(secondaries, seen, replace(rules, boundary=0))
    return Cutter(Ground(seen, sizes, events, [n]), bounds, stocks).split(most, len(files) - n)
