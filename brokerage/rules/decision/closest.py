"""Which skipped candidate is nearest to passing (decision B3): what a pending task is told first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from brokerage.rules.decision.declare import Criterion, Numbers
from brokerage.rules.facts.columns import Flags, Floats


def closest(criteria: Sequence[Criterion], failed: Flags, numbers: Sequence[Numbers]) -> int:
    """The row with the fewest failed persistent criteria, then the smallest relative gap in the first failed one, then by name.

    The first failed one is the first persistent one where there is any, else the first at all. `numbers` are those of the
    criteria, in the same order; criteria beyond them compare none. There is a candidate, and rows are in the order of names.
    """
    count = failed.shape[1]
    persistent = np.array([criterion.kind == "persistent" for criterion in criteria])
    lasting = failed[persistent].sum(axis=0)
    nearest = np.flatnonzero(lasting == lasting.min())
    judged = failed & persistent[:, None] if lasting.min() else failed
    first = np.argmax(judged, axis=0)
    gaps = np.full(count, np.inf)
    for i in set(first[nearest].tolist()):
        if i < len(numbers) and (pair := criteria[i].gap) is not None:
            gap = relative_gap(numbers[i][pair[0]], numbers[i][pair[1]], count)
            gaps[first == i] = gap[first == i]
    return int(nearest[np.argmin(gaps[nearest])])


def relative_gap(need: Any, limit: Any, count: int) -> Floats:
    """How far what is needed is from what there is, in parts of the latter; infinite where that is 0."""
    wanted = np.broadcast_to(np.asarray(need, dtype=np.float64), count)
    given = np.broadcast_to(np.asarray(limit, dtype=np.float64), count)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.abs(wanted - given) / np.abs(given)
    return np.where(np.isfinite(gap), gap, np.inf)
