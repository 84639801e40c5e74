"""How many jobs of a broker may wait and run at a site, by the slots of the site (row W4, facts on work queues b6)."""

from __future__ import annotations

from typing import NamedTuple

SITE_PERCENT, KIND_PERCENT = 50, 45
"""Parts of the slots of a site that jobs may wait for: of all kinds, and of one."""
FEWEST_CPU, FEWEST_IO = 50, 25
"""However small a site is."""
IO_PART = 10
"""One I/O slot for so many CPU slots, where nobody says how many there are (decision J8)."""


class Threshold(NamedTuple):
    """Most jobs that wait, and that run."""

    pending: int
    running: int


class SiteThresholds(NamedTuple):
    """Of a site together, and there of each kind of jobs that compute, and of each that mostly read and write."""

    site: Threshold
    cpu_kind: Threshold
    io_kind: Threshold


class ThresholdRule(NamedTuple):
    """Parts of the slots in percent, and the least slots, as thresholds are made by them."""

    site_percent: int = SITE_PERCENT
    kind_percent: int = KIND_PERCENT
    fewest_cpu: int = FEWEST_CPU
    fewest_io: int = FEWEST_IO


PRACTICE = ThresholdRule()


def thresholds(cpu_slots: int, io_slots: int, brokers: int, rule: ThresholdRule = PRACTICE) -> SiteThresholds:
    """`brokers`: those that work at the site and share what may wait there; one that drains counts itself alone."""
    brokers = max(brokers, 1)

    def waiting(slots: int, percent: int, fewest: int) -> int:
        return max(slots * percent // (100 * brokers), fewest)

    cpu, io = max(cpu_slots, rule.fewest_cpu), max(io_slots, rule.fewest_io)
    return SiteThresholds(
        Threshold(waiting(cpu_slots, rule.site_percent, rule.fewest_cpu), cpu),
        Threshold(waiting(cpu_slots, rule.kind_percent, rule.fewest_cpu), cpu),
        Threshold(waiting(io_slots, rule.kind_percent, rule.fewest_io), io),
    )


def slots_of(cpu_slots: int | None, io_slots: int | None, declared: int) -> tuple[int, int]:
    """The slots of a site: as its attributes say, else as declared, and for I/O a part of them, rounded up."""
    cpu = declared if cpu_slots is None else cpu_slots
    return cpu, -(-cpu // IO_PART) if io_slots is None else io_slots
