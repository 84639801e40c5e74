"""What users may rely on while processes are killed: nothing is lost, nothing is done twice, nothing waits for ever.

A run is a process of its own on private servers, whatever DATABASE_URL says. `CHAOS_SEED` repeats the faults of an earlier one;
logs and history of the last run stay in `.gridbroker/chaos`.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import checker
from tests.chaos.faults import SMOKE, SMOKE_STANDSTILLS, STANDSTILLS, STOPS
from tests.chaos.storage_faults import WAYS

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 450.0
STOP_S = 30.0
STANDARD = {"psycopg2", *sys.stdlib_module_names}


def chaos(*arguments: str, longest_s: float = LONGEST_S) -> dict[str, Any]:
    """The result of one run."""
    seed = os.environ.get("CHAOS_SEED")
    command = [sys.executable, "-m", "tests.chaos.run", *arguments, *(("--seed", seed) if seed else ())]
    ran = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        answer, said = ran.communicate(timeout=longest_s)
    except subprocess.TimeoutExpired:
        ran.terminate()  # it stops all that it has started
        answer, said = ran.communicate(timeout=STOP_S)
    assert answer, f"{' '.join(command)} ended with {ran.returncode}:\n{said[-4000:]}"
    result: dict[str, Any] = json.loads(answer)
    return result


def line(name: str, result: dict[str, Any]) -> str:
    """A run in one line."""
    kills = result["kills"]
    counted = ("jobs", "files", "brought", "placed", "opened", "submitted", "lost", "doubled", "stuck")
    parts = [
        f"{sum(kills.values())} kills ({', '.join(f'{n} {kind}' for kind, n in kills.items())})",
        f"{result['stopped']} pilots stopped",
        *result["standstills"],
        f"{result['late']} late reports",
        f"{sum(result['outages'].values())} storage outages",
        *(f"{result[what]} {what}" for what in counted),
        f"{result['seconds']:.0f} s (seed {result['seed']})",
    ]
    return f"{name}: {', '.join(parts)}"


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("times", "jobs", "outage_s"),
    [pytest.param(1, 250, 4, id="smoke"), pytest.param(10, 5000, 15, id="size", marks=pytest.mark.long)],
)
def test_nothing_is_lost_doubled_or_stuck_while_everything_is_killed_frozen_or_locked(
    times: int, jobs: int, outage_s: int, record_property: Callable[[str, object], None]
) -> None:
    result = chaos("--times", str(times), "--jobs", str(jobs), "--outage", str(outage_s), longest_s=times * LONGEST_S)
    record_property("told", line("chaos", result))
    assert result["violations"] == [], f"see .gridbroker/chaos; again with --seed {result['seed']}"
    assert (result["broken"], result["looks"] > 1) == ([], True), "the invariants hold at every moment"
    assert (result["lost"], result["doubled"], result["stuck"]) == (0, 0, 0)
    assert result["finished"] == result["files"] == jobs * 4
    assert result["jobs"] >= jobs
    assert result["brought"] > jobs / 2, "inputs and outputs travel between the sites"
    assert result["placed"] > jobs / 10, "open jobs get their queue when pilots take them"
    assert result["opened"] > 0 or times == 1, (
        "jobs that no pilot of their queue took are open to others; in a short run few wait"
    )
    assert result["submitted"] > jobs / 25, "some jobs run under pilots of their own"
    assert result["kills"] == {kind: n * times for kind, n in sorted(SMOKE.items())}
    assert result["stopped"] == STOPS * times
    assert len(result["standstills"]) == min(SMOKE_STANDSTILLS * times, len(STANDSTILLS))
    assert result["outages"] == dict.fromkeys(sorted(WAYS), times)
    assert result["written"] == [], "nothing is written where a storage ought to be and is not"
    assert result["late"] >= 2, "reports of leases that were over must have been tried"
    assert result["looked_at"]["reports answered 409"] >= 2


@pytest.mark.chaos
@pytest.mark.long
def test_without_the_fences_a_file_is_used_twice(record_property: Callable[[str, object], None]) -> None:
    """The same run with the epoch check, the used-once indexes and the guards off: what sees nothing then never sees anything."""
    result = chaos("--mutant", "--lease", "6")
    record_property("told", line("fences off", result))
    assert result["doubled"] > 0
    assert "a file was used twice" in {violation["what"] for violation in result["violations"]}


def test_the_checker_knows_nothing_of_the_application() -> None:
    tree = ast.parse(Path(checker.__file__).read_text(encoding="utf-8"))
    imported = {alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= STANDARD
