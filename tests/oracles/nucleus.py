"""The task broker a second time, site by site in plain Python, written from the document and not from our columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brokerage.rules.facts.ask import Ask

Row = Mapping[str, Any]

MANY: dict[str, list[Any]] = {
    "state": ["ACTIVE"] * 4 + ["TEST"],
    "free_gb": [4000, 5000, 5001, 9000, 9000],
    "files_queued": [0, 1999, 2000],
    "total_rw": [0.0, 40.0, 60.0, 1e9],
    "ahead_rw": [None, 0.0, 70.0],
    "able_queues": [-1, 0, 1, 4],
    "available_gb": [0.0, 0.5, 10.0, 100.0],
    "available_files": [0, 10, 20, 200],
    "tape_only": [False, True],
    "can_send": [True, True, True, False],
    "can_receive": [True, True, True, False],
}
TASKS: dict[str, list[Any]] = {
    "gb": [0.0, 1.0, 5.0, 100.0, 20_000.0],
    "files": [0, 100, 200],
    "priority": [500, 800],
    "io_intensity": [None, 200, 201],
    "t1_weight": [0, -1],
    "waits_s": [0.0, 8 * 86400.0],
}


def failing(task: Ask, row: Row, *, data: bool) -> list[str]:
    """The criteria that a site fails, once more from the document; `data`: whether input must be there."""
    chunk = task.chunk
    verdicts = [
        ("status", row["state"] != "ACTIVE"),
        ("space", row["free_gb"] - row["total_rw"] / 10 / 24 / 3600 * 0.25 <= 5000),
        ("insize", data and chunk.gb > 1 and row["available_gb"] < chunk.gb * 0.1),
        ("innum", data and chunk.files > 100 and row["available_files"] < chunk.files * 0.1),
        ("job", row["able_queues"] == 0),
        ("transfer_backlog", row["files_queued"] >= 2000 and task.t1_weight >= 0),
        ("source_blacklist", not row["can_send"]),
        ("destination_blacklist", not row["can_receive"]),
    ]
    return [label for label, fails in verdicts if fails]


def weight(task: Ask, row: Row) -> float:
    """By what a site is drawn."""
    work = row["total_rw"] if row["ahead_rw"] is None else row["ahead_rw"]
    found = 1 / (work if work >= 50 else 1)
    if task.chunk.gb:
        found *= row["available_gb"] / task.chunk.gb * (0.001 if row["tape_only"] else 1)
    return float(found)


def failing_all(task: Ask, rows: Sequence[Row]) -> dict[str, list[str]]:
    """The criteria of every site; that input must be there gives way where it is what keeps every site away."""
    data = task.waits_s <= 7 * 86400
    light = (task.io_intensity or 0) <= 200 and task.chunk.gb <= 10_000
    able = [failing(task, row, data=True) for row in rows if row["state"] == "ACTIVE"]
    if (light or task.priority >= 800) and able and all({"insize", "innum"} & set(found) for found in able):
        data = False
    return {row["name"]: failing(task, row, data=data) for row in rows}
