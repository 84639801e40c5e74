"""How many jobs of a broker may wait and run at a site, by the slots of the site (row W4, facts on work queues b6)."""

from __future__ import annotations

from typing import NamedTuple

SITE_PERCENT, KIND_PERCENT = 50, 45
"""Parts of the slots of a site that jobs may wait for: of all kinds, and of one."""
FEWEST_CPU, FEWEST_IO = 50, 25
"""However small a site is."""


class Threshold(NamedTuple):
    """Most jobs that wait, and that run."""

    pending: int
    running: int


class SiteThresholds(NamedTuple):
    """Of a site together, and there of each kind of jobs that compute, and of each that mostly read and write."""

    site: Threshold
    cpu_kind: Threshold
    io_kind: Threshold


def thresholds(cpu_slots: int, io_slots: int, brokers: int) -> SiteThresholds:
    """`brokers`: those that work at the site and share what may wait there; one that drains counts itself alone."""
    brokers = max(brokers, 1)

    def waiting(slots: int, percent: int, fewest: int) -> int:
        return max(slots * percent // (100 * brokers), fewest)

    cpu, io = max(cpu_slots, FEWEST_CPU), max(io_slots, FEWEST_IO)
    return SiteThresholds(
        Threshold(waiting(cpu_slots, SITE_PERCENT, FEWEST_CPU), cpu),
        Threshold(waiting(cpu_slots, KIND_PERCENT, FEWEST_CPU), cpu),
        Threshold(waiting(io_slots, KIND_PERCENT, FEWEST_IO), io),
    )
