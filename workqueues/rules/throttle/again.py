"""A stored verdict of the throttler taken again for a unit that would be throttled, or would not be (decision L1).

What a verdict keeps is judged: jobs by state and the limits with their numbers. Priorities and walltimes are not kept, so the
rules that read them do not hold here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from workqueues.rules.throttle.throttler import Counts, Limits, Verdict, throttled

NOT_KEPT = frozenset({"walltime", "high_priority"})


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict as it is kept. `limits`: limit -> value, level, and the jobs counted there (running, queued)."""

    decision: str
    rule: str
    resource_type: str
    counts: Counts
    ratio: float
    limits: Mapping[str, Mapping[str, Any]]
    practice: Collection[str]


def judged_again(stored: StoredVerdict, *, unthrottled: bool) -> Verdict:
    """The verdict where the unit is never throttled, or where it is."""
    limits = Limits(
        lower=_value(stored, "lower"),
        cap=_value(stored, "cap"),
        running_cap=_value(stored, "running_cap"),
        ratio=stored.ratio,
        practice=frozenset(stored.practice) - NOT_KEPT,
        unthrottled=unthrottled,
    )
    return throttled(_at(stored, "lower"), limits, at_cap=_at(stored, "cap"), at_running_cap=_at(stored, "running_cap"))


def _value(stored: StoredVerdict, name: str) -> int | None:
    return stored.limits[name]["value"] if name in stored.limits else None


def _at(stored: StoredVerdict, name: str) -> Counts:
    """The jobs at the level of a limit; of another level than the unit's own only how many run and wait are known."""
    limit = stored.limits.get(name)
    if limit is None or limit["level"] == stored.resource_type:
        return stored.counts
    return Counts(running=limit["running"], activated=limit["queued"])
