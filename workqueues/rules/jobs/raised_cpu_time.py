"""The CPU time for each event that a job which ran out of time shows to be needed (retry rule action increase_cputime). Pure.

Source: facts on commands and retry 3.4.
"""

from __future__ import annotations

from typing import NamedTuple

from workqueues.rules.jobs.measured_needs import CPU_FACTOR, LONGEST_S, SHORTEST_S

RUN_FACTOR = 1.1
"""Margin on the time that the job ran."""
SMALL_HS06S = 10.0
"""Less is kept in thousandths."""


class CpuTime(NamedTuple):
    """CPU time for each event, in `unit`: HS06sPerEvent or mHS06sPerEvent."""

    amount: float
    unit: str

    @property
    def hs06s(self) -> float:
        """In HS06 s."""
        return self.amount / 1000.0 if self.unit.startswith("m") else self.amount


def raised_cpu_time(
    wall_s: float | None, base_s: float, power_hs06: float, cores: int, efficiency_percent: float, n_events: int
) -> CpuTime | None:
    """(wall time - base) x power of a core x cores x 1.1 / efficiency / events x 1.5. None where something of it is not known, or
    the job ran no longer than the base time.
    """
    if wall_s is None or not SHORTEST_S <= wall_s <= LONGEST_S or wall_s <= base_s:
        return None
    if power_hs06 <= 0 or efficiency_percent <= 0 or n_events <= 0:
        return None
    work = (wall_s - base_s) * power_hs06 * max(cores, 1) * RUN_FACTOR / (efficiency_percent / 100.0)
    each = work / n_events * CPU_FACTOR
    return CpuTime(each * 1000.0, "mHS06sPerEvent") if each < SMALL_HS06S else CpuTime(each, "HS06sPerEvent")
