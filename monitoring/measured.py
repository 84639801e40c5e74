"""What a pilot measured of a payload, in words and with units: what is read of it, and what it adds by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

KNOWN = {
    "wall_s": "Wall time",
    "cpu_s": "CPU time",
    "max_pss_mb": "Peak memory (PSS)",
    "max_rss_mb": "Peak memory (RSS)",
    "read_bytes": "Read from disk",
    "written_bytes": "Written to disk",
    "work_mb": "Peak use of the working folder",
}
"""Measure of the protocol of pilots -> what it is, in the order of the page."""
UNITS = {"bytes": ("bytes", 1.0), "kb": ("bytes", 1e3), "mb": ("bytes", 1e6), "gb": ("bytes", 1e9), "s": ("s", 1.0)}
"""Ending of a name -> what its numbers are, and how many of it one is."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure. `unit`: bytes, s, or empty where the name says none."""

    what: str
    value: Any
    unit: str = ""


def measured(metrics: Mapping[str, Any] | None) -> list[Measured]:
    """Those that are known first, then the others by name."""
    return list(_measured(metrics or {}))


def _measured(metrics: Mapping[str, Any]) -> Iterator[Measured]:
    for name in [*(name for name in KNOWN if name in metrics), *sorted(metrics.keys() - KNOWN.keys())]:
        value, (front, _, ending) = metrics[name], name.rpartition("_")
        unit, of_it = UNITS.get(ending.lower(), ("", 1.0)) if front else ("", 1.0)
        if not unit or not isinstance(value, int | float):
            front, unit = name, ""
        what = KNOWN.get(name) or front.replace("_", " ").strip()
        yield Measured(what[:1].upper() + what[1:], value * of_it if unit else value, unit)
