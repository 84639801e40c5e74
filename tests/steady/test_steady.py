"""Under a steady load nothing grows but what is finished, and nothing goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.servers
@pytest.mark.parametrize(
    ("minutes", "jobs", "settled"),
    [pytest.param(0.25, 200, False, id="short"), pytest.param(30, 3000, True, id="long", marks=pytest.mark.long)],
)
def test_a_steady_load_is_carried_without_growth_or_faults(
    minutes: float, jobs: int, settled: bool, own_database: dict[str, str], record_property: Callable[[str, object], None]
) -> None:
    """In a quarter of a minute on a busy machine only faults can be judged; the long form judges what is to stay as it is."""
    command = [sys.executable, "-m", "tests.steady.run", "--minutes", str(minutes), "--jobs", str(jobs)]
    ran = subprocess.run(command, cwd=ROOT, env=own_database, capture_output=True, text=True, timeout=60 * minutes + 600)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    *readings, seen = map(json.loads, ran.stdout.strip().splitlines())
    record_property("told", json.dumps(seen))
    assert len(readings) >= 25
    assert seen["finished"] > 0
    assert (seen["deadlocks"], seen["errors"], seen["refused"]) == (0, [], [])
    if not settled:
        return
    early, late = seen["jobs_per_s"]
    assert min(early, late) > 0.95 * seen["wanted_per_s"], seen
    early, late = seen["bytes_per_job"]
    assert abs(late - early) <= 0.05 * early, seen
    assert seen["dead"] <= 0.2, seen
    for name, (before, after) in seen["memory_mb"].items():
        assert after <= 1.05 * before + 5, (name, seen)
