"""What changed of a task, in words: columns as people call them, numbers rounded, each with its unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES = {
    "ram_count": "memory",
    "base_ram_count": "memory of a job however many cores it has",
    "cpu_time": "CPU time",
    "cpu_efficiency": "CPU efficiency",
    "walltime": "run time per MB of input",
    "base_walltime": "run time of a job however large its input is",
    "io_intensity": "traffic of inputs and outputs",
    "disk_io": "local disk access",
    "out_disk_count": "size of the outputs",
    "work_disk_count": "size of the working folder",
    "resource_type": "class of resources",
    "split_rule": "split rule",
    "current_priority": "priority",
    "gshare": "share",
    "core_count": "cores",
}
"""Column of a task -> what it is."""
UNITS = {
    "kBPerS": "kB/s",
    "MBPerCore": "MB per core",
    "HS06sPerEvent": "HS06\N{NO-BREAK SPACE}s per event",
    "mHS06sPerEvent": "mHS06\N{NO-BREAK SPACE}s per event",
    "kBPerEvent": "kB per event",
    "MBPerEvent": "MB per event",
    "GBPerEvent": "GB per event",
}
OF_COLUMN = {"ram_count": "MB", "base_ram_count": "MB", "walltime": "s", "base_walltime": "s", "cpu_efficiency": "%"}
"""Unit of a column where the change tells none."""
NEEDS_CHANGED = "needs changed by hand"
"""What a note of a task says where somebody changed what its jobs need."""
UNIT, COUNT = "_unit", "_count"
WHOLE = 100
"""Numbers from here on are told without a fraction, smaller ones with three digits."""


def changes_in_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The changes with commas between; empty where nothing changed but units of what is told."""
    told = []
    for name in sorted(after, key=lambda name: NAMES.get(name, name)):
        if (of := _told_with(name, after)) is None:
            what, unit = NAMES.get(name, name.replace("_", " ")), _unit(name, before, after)
            old, new = _value(before.get(name)), f"{_value(after[name]) or 'none'}{unit}"
            told.append(f"{what} from {old} to {new}" if old else f"{what} {new}")
        elif not of:
            told.append(f"unit of {_of_unit(name)} {UNITS.get(str(after[name]), str(after[name])) or 'none'}")
    return ", ".join(told)


def value_in_words(name: str, row: Mapping[str, Any]) -> str:
    """What a column of a task holds, with its unit; empty where it holds nothing."""
    value = _value(row.get(name))
    return f"{value}{_unit(name, row, row)}" if value else ""


def _of_unit(name: str) -> str:
    stem = name.removesuffix(UNIT)
    return NAMES.get(stem) or NAMES.get(f"{stem}{COUNT}") or stem.replace("_", " ")


def _told_with(name: str, after: Mapping[str, Any]) -> bool | None:
    """Of a unit, whether its number is told too; None: it is no unit."""
    if not name.endswith(UNIT):
        return None
    stem = name.removesuffix(UNIT)
    return stem in after or f"{stem}{COUNT}" in after


def _unit(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    column = f"{name.removesuffix(COUNT)}{UNIT}"
    unit = str(after.get(column) or before.get(column) or OF_COLUMN.get(name, ""))
    return f"\N{NO-BREAK SPACE}{UNITS.get(unit, unit)}" if unit else ""


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= WHOLE else f"{value:.3g}"
