"""The class of a task's resources: single or many cores, normal or much memory. Source: facts on brokerage 2.1; decision B4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

UNDEFINED = "Undefined"
CORES_WHEN_FREE = 8
"""Cores by which a task whose core count may vary (0) is classed."""


class ResourceType(NamedTuple):
    """One class: bounds of cores and of memory a core in MB, inclusive; None is open."""

    name: str
    min_cores: int | None
    max_cores: int | None
    min_ram_per_core: int | None
    max_ram_per_core: int | None

    def takes(self, cores: int, ram_per_core: int) -> bool:
        return (
            (self.min_cores is None or cores >= self.min_cores)
            and (self.max_cores is None or cores <= self.max_cores)
            and (self.min_ram_per_core is None or ram_per_core >= self.min_ram_per_core)
            and (self.max_ram_per_core is None or ram_per_core <= self.max_ram_per_core)
        )


RESOURCE_TYPES = (
    ResourceType("SCORE", 1, 1, None, 2000),
    ResourceType("SCORE_HIMEM", 1, 1, 2001, None),
    ResourceType("MCORE", 2, None, None, 2000),
    ResourceType("MCORE_HIMEM", 2, None, 2001, None),
)
"""The classes of practice, in the order in which they are tried."""


def ram_per_core(
    core_count: int | None, ram_count: float | None, ram_unit: str, base_ram_count: float | None, compensation: float
) -> int:
    """Memory a core of a task in MB: what it asks for, with its base, times `compensation` (key MEMORY_COMPENSATION), rounded
    down.
    """
    cores = _cores(core_count)
    ram, base = ram_count or 0, base_ram_count or 0
    whole = ram * cores + base if ram_unit.startswith("MBPerCore") else ram + base
    return int(compensation * whole / cores)


def resource_type(
    core_count: int | None,
    ram_count: float | None,
    ram_unit: str = "MB",
    base_ram_count: float | None = None,
    *,
    compensation: float = 0.9,
    types: Sequence[ResourceType] = RESOURCE_TYPES,
) -> str:
    """The first class that takes the task; `Undefined` if none does. Core count None is 1, 0 (may vary) counts as 8."""
    cores = _cores(core_count)
    need = ram_per_core(core_count, ram_count, ram_unit, base_ram_count, compensation)
    return next((t.name for t in types if t.takes(cores, need)), UNDEFINED)


def _cores(core_count: int | None) -> int:
    return 1 if core_count is None else core_count or CORES_WHEN_FREE
