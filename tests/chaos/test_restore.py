"""A backup is of use: restored under working pilots it loses nothing and does nothing twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.chaos
def test_a_dump_is_restored_under_working_pilots(record_property: Callable[[str, object], None]) -> None:
    ran = subprocess.run([sys.executable, "-m", "tests.chaos.drill"], cwd=ROOT, capture_output=True, text=True, timeout=450)
    assert ran.stdout, ran.stderr[-4000:]
    result = json.loads(ran.stdout)
    counted = ("files", "finished_before", "finished_in_dump", "finished", "doubled", "orphans", "orphans_left")
    record_property(
        "told", "restore: " + ", ".join(f"{result[name]} {name}" for name in counted) + f", {result['seconds']:.0f} s"
    )
    assert result["violations"] == []
    assert (result["finished"], result["doubled"], result["open"]) == (result["files"], 0, 0)
    assert result["finished_in_dump"] < result["finished_before"], "work was done after the dump, and its files were there"
    assert result["orphans"] > 0
    assert result["orphans_left"] == 0
