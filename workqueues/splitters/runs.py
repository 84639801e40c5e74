"""Where a job must end because what comes next may not stand in the same job: boundaries, lumi blocks, gaps in event numbers.

Source: facts on splitting 8.2. Files of one boundary, and of one lumi block, stand together in the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import add

from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.protocol import Files

WHOLE = 3
"""From this value of groupBoundaryID on, files of one boundary are not split."""
SHARED = 3
"""The value of groupBoundaryID with which jobs may have files of several boundaries."""


def run_ends(files: Files, rules: SplitRules, gaps: Sequence[int] = ()) -> list[int]:
    """Where the runs end out of which no job goes: at another boundary, another lumi block, one of the `gaps`, the end."""
    ends = {len(files), *gaps}
    if rules.boundary and rules.boundary != SHARED:
        ends.update(_changes(files.boundaries))
    if rules.respect_lb:
        ends.update(_changes(files.lumi_blocks))
    ends.discard(0)
    return sorted(ends)


def unit_ends(files: Files, rules: SplitRules) -> list[int] | None:
    """Where the units end that are in one job as a whole; None where each file is one.

    All files of a boundary that is not split are one unit; a file without boundary is one of its own.
    """
    if rules.boundary < WHOLE or not len(files.boundaries):
        return None
    ends = [i for i, (a, b) in enumerate(pairwise(files.boundaries), 1) if a != b or b is None]
    return [*ends, len(files)]


def event_gaps(files: Files) -> Iterator[int]:
    """Where the events of a piece do not go on from those before: behind the end of a file, 0 of the next one must come.

    There is one too between files whose events are known and others.
    """
    known = files.n_events
    if not len(known):
        return
    yield from (i for i, (a, b) in enumerate(pairwise(known), 1) if (a == 0) != (b == 0))
    if len(files.firsts) and (any(files.firsts) or list(files.totals) != list(known)):
        stops = map(add, files.firsts, known)
        ended = [stop == total for stop, total in zip(stops, files.totals or known, strict=True)]
        yield from (i for i, first in enumerate(files.firsts) if i and (first or not ended[i - 1]))


def _changes(column: Sequence[int | None]) -> Iterator[int]:
    return (i for i, (a, b) in enumerate(pairwise(column), 1) if a != b)
