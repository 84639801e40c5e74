"""What a job takes of the secondary datasets of its master.

Source: facts on splitting 8.3 (attributes); facts on task parameters 3.3. `manytime` and `cvmfs` do not bear on the number; the
order of a shuffled dataset (`random`) is the caller's, and reuseSecOnDemand comes as datasets that are reusable. Not here: how
far a job goes (`cutter`), and which files are tracked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, pairwise
from typing import NamedTuple

from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.costs import running
from workqueues.splitters.protocol import Files, Portion, Secondary
from workqueues.splitters.runs import WHOLE


class Shortage(NamedTuple):
    """A secondary dataset has too few files for a job; `for_good`: none will come."""

    reason: str
    for_good: bool


def scaled(ratio: float, n: int) -> int:
    """`n` times the ratio, rounded up, exactly as its digits say: 0.3 times 10 is 3."""
    exact = Fraction(str(ratio))
    return -(-exact.numerator * n // exact.denominator)


@dataclass(slots=True)
class Stock:
    """A secondary dataset while it is dealt out: its running sums, the position of the next file, the run of each boundary.

    `runs`: None where boundaries do not matter for it; `whole`: a boundary is not split.
    """

    dataset: Secondary
    sizes: list[int]
    events: list[int]
    runs: dict[int | None, tuple[int, int]] | None
    whole: bool
    at: int

    def portion(self, n_files: int, n_events: int, boundaries: Sequence[int | None]) -> Portion | Shortage:
        """What a job on so many files, with so many events and these boundaries of the master takes; Shortage if it cannot."""
        rule, total = self.dataset.rule, len(self.dataset.files)
        if self.runs is not None:
            return self._of_boundaries(
                [span for each, _ in groupby(boundaries) if (span := self.runs.get(each))], n_files, n_events
            )
        if rule.nosplit and total:
            return Portion(0, total)
        n = self._count(self.at, n_files, n_events)
        if rule.repeat and total:
            return Portion(self.at % total, min(n, total))
        if self.at + n <= total:
            return Portion(self.at, n)
        if rule.reusable and total:
            return Portion(0, min(self._count(0, n_files, n_events), total))
        return self._short(n, n_events)

    def _count(self, at: int, n_files: int, n_events: int) -> int:
        """How many files are wanted from `at` on; more than there are where they have too few events."""
        rule = self.dataset.rule
        if rule.files_per_job is not None:
            return rule.files_per_job
        if rule.event_ratio is None or not n_events:
            return scaled(rule.ratio, n_files)
        wanted, total = scaled(rule.event_ratio, n_events), len(self.dataset.files)
        at = at % total if rule.repeat and total else min(at, total)
        n = bisect_left(self.events, self.events[at] + wanted, at) - at
        if at + n > total and rule.repeat:
            n = total - at + bisect_left(self.events, wanted - (self.events[total] - self.events[at]), 0)
        return n

    def _of_boundaries(self, spans: Sequence[tuple[int, int]], n_files: int, n_events: int) -> Portion | Shortage:
        """Only files of the boundaries that the master files of the job have, which stand in `spans`.

        All of them where boundaries are not split, else as many as there are of the wanted number.
        """
        if not spans:
            return Portion(self.at, 0)
        if any(a[1] != b[0] for a, b in pairwise(spans)):
            return Shortage(f"files of {self.dataset.name} with the boundaries of one job do not stand together", True)
        first, stop = spans[0][0], spans[-1][1]
        rule = self.dataset.rule
        if rule.tracked and first <= self.at <= stop:
            # Several jobs may have files of one boundary, or of none: what is used once goes to the first of them.
            first = self.at
        if self.whole or rule.nosplit:
            return Portion(first, stop - first)
        return Portion(first, min(self._count(first, n_files, n_events), stop - first))

    def _short(self, n: int, n_events: int) -> Shortage:
        rule, files = self.dataset.rule, self.dataset.files
        at = min(self.at, len(files))
        left, what = len(files) - at, "files"
        if rule.event_ratio is not None and rule.files_per_job is None and n_events:
            left, n, what = self.events[-1] - self.events[at], scaled(rule.event_ratio, n_events), "events"
        return Shortage(f"{self.dataset.name} has {left} {what} left, the next job takes {n}", files.complete)

    def size(self, portion: Portion) -> int:
        stop, total = portion.start + portion.n, len(self.dataset.files)
        if stop <= total:
            return self.sizes[stop] - self.sizes[portion.start]
        return self.sizes[total] - self.sizes[portion.start] + self.sizes[stop - total]

    def take(self, portion: Portion) -> None:
        rule = self.dataset.rule
        if not portion.n or rule.nosplit or (self.runs is not None and not rule.tracked):
            return
        self.at = portion.start + portion.n
        if rule.repeat:
            self.at %= len(self.dataset.files)


class Stocks:
    """All secondary datasets of a master, dealt out together."""

    def __init__(self, secondaries: Sequence[Secondary], master: Files, rules: SplitRules) -> None:
        self._stocks = [_stock(each, rules) for each in secondaries]
        self._boundaries = master.boundaries
        self._bound = any(stock.runs is not None for stock in self._stocks)

    def __bool__(self) -> bool:
        return bool(self._stocks)

    def deal(self, start: int, stop: int, n_events: int) -> tuple[Portion, ...] | Shortage:
        """A portion of each for a job on the master pieces from `start` up to `stop`; Shortage if one has too few."""
        boundaries = (self._boundaries[start:stop] or [None]) if self._bound else ()
        portions: list[Portion] = []
        for stock in self._stocks:
            portion = stock.portion(stop - start, n_events, boundaries)
            if isinstance(portion, Shortage):
                return portion
            portions.append(portion)
        return tuple(portions)

    def size(self, portions: Sequence[Portion]) -> int:
        return sum(stock.size(portion) for stock, portion in zip(self._stocks, portions, strict=True))

    def take(self, portions: Sequence[Portion]) -> None:
        for stock, portion in zip(self._stocks, portions, strict=True):
            stock.take(portion)

    def secondaries(self) -> tuple[Secondary, ...]:
        """The secondary datasets as they stand now."""
        return tuple(replace(stock.dataset, at=stock.at, sums=(stock.sizes, stock.events)) for stock in self._stocks)


def _stock(secondary: Secondary, rules: SplitRules) -> Stock:
    files = secondary.files
    n, at = len(files), secondary.at
    bound = rules.boundary > 0 and any(each is not None for each in files.boundaries)
    return Stock(
        secondary,
        *(secondary.sums or (running(files.sizes, n), running(files.n_events, n))),
        _runs(files.boundaries) if bound else None,
        rules.boundary >= WHOLE,
        at,
    )


def _runs(boundaries: Sequence[int | None]) -> dict[int | None, tuple[int, int]]:
    spans: dict[int | None, tuple[int, int]] = {}
    at = 0
    for boundary, files in groupby(boundaries):
        stop = at + sum(1 for _ in files)
        spans.setdefault(boundary, (at, stop))
        at = stop
    return spans
