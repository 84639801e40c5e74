"""Cutting by events: nEventsPerJob a job across the ends of files, or even parts of each file (tgtNumEventsPerJob).

Source: seed 001, event-level splitting; decision F2; facts on splitting 8.2, 8.3. A job has neighbouring events only, as its
payload is told how many to skip and how many to process. Files whose events are not known are cut by files.
"""

from __future__ import annotations

from collections.abc import Sequence

from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.costs import lines, running
from workqueues.splitters.cutter import Cutter, Ground, bounds_of, ceiling_of, first_pieces
from workqueues.splitters.protocol import Files, JobLimits, Secondary, Split
from workqueues.splitters.runs import event_gaps, run_ends
from workqueues.splitters.secondaries import Stocks


def by_events(
    files: Files, rules: SplitRules, limits: JobLimits, most: int | None = None, secondaries: Sequence[Secondary] = ()
) -> Split:
    """Jobs of nEventsPerJob events; fewer at the end of a run of events, and at the end of a file where a limit binds.

    A job takes its first events of one file, up to nEventsPerJob, whatever they cost, unless a hard budget forbids it.
    """
    seen = files if rules.skip_short_output else first_pieces(files, most, ceiling_of(rules, limits))
    n = len(seen)
    sizes, events = running(seen.sizes, n), running(seen.n_events, n)
    bounds = bounds_of(rules, limits, lines(limits.budgets, sizes, events), by_event=True)
    if rules.target_events and len(seen.n_events):
        totals = seen.totals if len(seen.totals) else seen.n_events
        ground = Ground(seen, sizes, events, [*range(1, n + 1)], chunks=[even(total, rules.target_events) for total in totals])
    else:
        ground = Ground(seen, sizes, events, run_ends(seen, rules, [*event_gaps(seen)]))
    return Cutter(ground, bounds, Stocks(secondaries, seen, rules)).split(most, len(files) - n)


def even(total: int, target: int) -> int:
    """Events of a job where a file of `total` events is cut into even parts of at most `target`."""
    return -(-total // max(-(-total // target), 1))
