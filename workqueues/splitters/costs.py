"""Budgets over columns of pieces, in whole numbers, so that what is equal is not taken for more or less (decision A4: no rounding
inside a formula)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import lcm

from workqueues.rules.jobs.job_size import Budget

DIGITS = 14
"""Significant digits of a price or a budget; what floats have behind them is an error of theirs."""


@dataclass(frozen=True, slots=True)
class Line:
    """One budget over the pieces: `sums` of their costs up to each position, and the most that those of one job may cost.

    `per_byte` and `per_event` are the prices, in the unit of the sums.
    """

    sums: Sequence[int]
    most: int
    per_byte: int
    per_event: int
    hard: bool
    what: str

    def reach(self, start: int, skip: int = 0) -> int:
        """The end of what fits behind the first `skip` events of the piece at `start`; `start` or less where nothing does."""
        return bisect_right(self.sums, self.sums[start] + self.per_event * skip + self.most, start) - 1

    def allows(self, size: int, n_events: int) -> bool:
        return self.per_byte * size + self.per_event * n_events <= self.most


def running(column: Sequence[int], n: int) -> list[int]:
    """Sums of the first 0, 1, 2, ... entries; of `n` zeros for an empty column."""
    return list(accumulate(column, initial=0)) if len(column) else [0] * (n + 1)


def lines(budgets: Iterable[Budget], sizes: list[int], events: list[int]) -> list[Line]:
    """The budgets over pieces whose running sums of bytes and events are given."""
    return [_line(budget, sizes, events) for budget in budgets]


def _line(budget: Budget, sizes: list[int], events: list[int]) -> Line:
    per_byte, per_event, most = _whole(budget)
    if not per_event:
        sums = sizes if per_byte else [0] * len(sizes)
    elif not per_byte:
        sums = events
    else:
        sums = [per_byte * size + per_event * n for size, n in zip(sizes, events, strict=True)]
    return Line(sums, most, per_byte, per_event, budget.hard, budget.what)


@lru_cache(maxsize=4096)
def _whole(budget: Budget) -> tuple[int, int, int]:
    """The prices and the most that a job may cost, as whole numbers of one unit, "less than" made "not more than"."""
    exact = [Fraction(f"{number:.{DIGITS}g}") for number in (budget.per_byte, budget.per_event, budget.most)]
    unit = lcm(*(number.denominator for number in exact))
    per_byte, per_event, most = (int(number * unit) for number in exact)
    most -= budget.below
    if not (per_byte and per_event) and (price := per_byte or per_event):
        return per_byte // price, per_event // price, most // price
    return per_byte, per_event, most
