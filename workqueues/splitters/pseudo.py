"""Cutting a task without input: one numbered pseudo file a job. Source: seed 001, "Pseudo datasets and files"; facts on
splitting 8.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.costs import lines, running
from workqueues.splitters.cutter import Bounds, Cutter, Ground, first_pieces
from workqueues.splitters.protocol import Files, JobLimits, Secondary, Split
from workqueues.splitters.secondaries import Stocks


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
