"""What users may rely on with a tree of brokers: a child killed, another one cut off, and nothing is lost or done twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.chaos
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--small", "--jobs", "100", "--longest", "240"), id="small"),
        pytest.param(("--jobs", "2000", "--longest", "3000"), id="size", marks=pytest.mark.long),
    ],
)
def test_nothing_is_lost_doubled_or_stuck_in_a_tree_of_brokers(
    arguments: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    seed = os.environ.get("CHAOS_SEED")
    command = [sys.executable, "-m", "tests.chaos.tree", *arguments, *(("--seed", seed) if seed else ())]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=float(arguments[-1]) + 400, check=False)
    assert ran.stdout, ran.stderr[-4000:]
    result = json.loads(ran.stdout)
    counted = ("tasks", "files", "finished", "lost", "orphans", "seconds", "seed")
    record_property("told", "tree: " + ", ".join(f"{result[name]} {name}" for name in counted))
    assert result["wrong"] == []
    assert (result["lost"], result["stuck"]) == (0, {})
    assert result["finished"] + result["failed"] == result["files"]
    assert result["faults"], "brokers are killed and cut off"
