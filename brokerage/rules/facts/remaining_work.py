"""How much work a task still is, in HS06 seconds. Source: seed 001, task brokerage; facts on the brokerage 5."""

from __future__ import annotations

UNKNOWN_CPU_TIME = 300.0
"""HS06 s per event of a task that gives none."""

LEAST = 50.0
"""Work below this counts as 1 in the weight of a nucleus."""


def hs06_s_per_event(cpu_time: float | None, unit: str | None) -> float | None:
    """What an event takes; units that begin with m are thousandths (facts on the brokerage 9). None where it is not known."""
    if not cpu_time:
        return None
    return cpu_time / 1000.0 if (unit or "").startswith("mHS") else cpu_time


def remaining_work(n_events: int, n_events_used: int, cpu_time: float | None, unit: str | None = None) -> float:
    """RW of a task: events of its master dataset that no job has used yet, times what one takes."""
    per_event = hs06_s_per_event(cpu_time, unit)
    return max(n_events - n_events_used, 0) * (UNKNOWN_CPU_TIME if per_event is None else per_event)
