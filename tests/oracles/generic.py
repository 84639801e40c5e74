"""The generic broker a second time, queue by queue in plain Python, written from the table of facts and not from our columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from brokerage.rules.facts.ask import Ask

Row = Mapping[str, Any]


def means(patterns: Sequence[str], row: Row) -> bool:
    """Whether one of the patterns is a name of the queue or of its site."""
    found = [re.compile(re.escape(pattern.strip()).replace(r"\*", ".*")) for pattern in patterns if pattern.strip()]
    return any(one.fullmatch(name) for one in found for name in (row["name"], row["site"]))


def merged(ask: Ask) -> Ask:
    """The task with what its jobs need: merge jobs have needs of their own, and earlier tries may have needed more memory."""
    tried = ask.chunk.ram_count or 0
    if ask.merge and ask.merge_core_count is not None:
        ask = replace(ask, core_count=ask.merge_core_count)
    if ask.merge and ask.merge_ram_count:
        return replace(ask, ram_count=max(ask.merge_ram_count, tried, 2000), ram_unit="MB")
    return replace(ask, ram_count=tried) if tried > (ask.ram_count or 0) else ask


def unmatched(ask: Ask, row: Row) -> list[tuple[str, bool]]:
    """Where no pilot of the queue's site would get the jobs."""
    return [
        ("banned_site", row["site"] in ask.banned_sites),
        ("no_station", len(ask.stations) > 0 and row["site"] not in ask.station_sites),
    ]


def walltime(ask: Ask, row: Row) -> float | None:
    """Expected walltime at the queue, s."""
    if not ask.cpu_time:
        return None
    base = 600 if ask.base_walltime is None else ask.base_walltime
    efficiency = 90 if ask.cpu_efficiency is None else ask.cpu_efficiency
    if efficiency == 0:
        return float(base)
    cpu_time = ask.cpu_time / 1000 if ask.cpu_time_unit == "mHS06sPerEvent" else ask.cpu_time
    cores = row["corecount"] if row["corecount"] > 0 else max(1, 1 if ask.core_count is None else ask.core_count)
    return cpu_time * ask.chunk.n_events / (cores * (row["corepower"] or 10) * efficiency / 100) + base


def megabytes(count: float | None, unit: str | None) -> float:
    """A size in MB."""
    factor = {"kB": 0.001, "kBPerEvent": 0.001, "GB": 1000.0}.get(unit or "", 1.0)
    return (count or 0) * factor


def failing(ask: Ask, row: Row) -> list[str]:
    """The labels of every criterion that the queue fails, in the order of the policy."""
    assigned = ask.site is not None
    wanted = 1 if ask.core_count is None else ask.core_count
    slots = row["corecount"]
    cores = slots if slots > 0 else max(wanted, 1)
    memory = (ask.base_ram_count or 0) + (ask.ram_count or 0) * (cores if ask.ram_unit == "MBPerCore" else 1)
    judges_memory = bool(ask.ram_count or ask.base_ram_count) and not assigned
    time = walltime(ask, row)
    disk = megabytes(ask.out_disk_count, ask.out_disk_unit) + megabytes(ask.work_disk_count, ask.work_disk_unit)
    disk += 0 if row["direct_access_lan"] else ask.chunk.gb * 1000
    fits = slots <= 0 or (slots == 1 if wanted == 1 else slots >= wanted)
    allowed, excluded = row["allowed_processing"], row["excluded_processing"]
    verdicts = [
        ("nonpreassigned", assigned and not means((ask.site or "").split(","), row)),
        ("excluded", not assigned and means(ask.excluded_sites, row)),
        ("notincluded", not assigned and bool(ask.included_sites) and not means(ask.included_sites, row)),
        ("status", row["status"] != "online" and not assigned),
        ("disk", row["maxwdir"] != 0 and disk > row["maxwdir"]),
        ("disk", row["space_gb"] is not None and row["space_gb"] < 200),
        ("shortwalltime", time is not None and row["maxtime"] != 0 and time > row["maxtime"]),
        ("longwalltime", time is not None and time < row["mintime"]),
        ("cpucore", not assigned and wanted != 0 and not fits),
        ("lowmemory", judges_memory and row["maxrss"] != 0 and memory > row["maxrss"]),
        ("highmemory", judges_memory and memory < row["minrss"]),
        (
            "processing",
            bool(
                (allowed and ask.processing_type not in allowed.split("|"))
                or (excluded and ask.processing_type in excluded.split("|"))
            ),
        ),
        ("nopilot", not assigned and row["requests_3h"] == 0),
        *unmatched(ask, row),
    ]
    return [label for label, fails in verdicts if fails]


def weight(row: Row) -> float:
    """Running over waiting."""
    return float((row["running"] + 1) / (row["activated"] + row["defined"] + 1) / (row["defined"] + 1))


def decide(ask: Ask, rows: Sequence[Row], best: int) -> tuple[list[tuple[str, float]], dict[str, list[str]]]:
    """The chosen with their weights, best first, and the failing labels of every other queue."""
    failed = {row["name"]: failing(ask, row) for row in rows}
    passing = sorted((row for row in rows if not failed[row["name"]]), key=lambda row: (-weight(row), row["name"]))
    chosen = [(row["name"], weight(row)) for row in passing[:best]]
    for row in passing[best:]:
        failed[row["name"]] = ["low_weight"]
    return chosen, {name: labels for name, labels in failed.items() if labels}
