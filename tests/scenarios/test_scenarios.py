"""Scenarios on one running system, by default configuration: slots are kept busy, nothing starves, waits end with their cause."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOOK_AGAIN_S = 10.0


def played(environment: dict[str, str], *names: str, longest_s: float = 600) -> dict[str, dict[str, Any]]:
    """What was seen in these scenarios, or in all, by name."""
    command = [sys.executable, "-m", "tests.scenarios.stage", *names]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=longest_s)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    return {line["scenario"]: line for line in map(json.loads, ran.stdout.strip().splitlines())}


@pytest.mark.servers
def test_slots_are_kept_busy_nothing_starves_and_waits_end_with_their_cause(own_database: dict[str, str]) -> None:
    """All scenarios are played on one system, one after the other; the bounds leave room for a busy machine."""
    seen = played(own_database)
    print("\n".join(json.dumps(line) for line in seen.values()))  # shown where one of these fails
    assert (seen["at_rest"]["p95_s"] < 1, seen["at_rest"]["sessions"] < seen["at_rest"]["moves"]) == (True, True), seen
    assert seen["few_slots"]["busy"] > 0.3, seen
    assert seen["long_and_short"]["left_of_the_long_one"] > 100, seen
    assert seen["misfits"]["seconds_of_plain"] < 40, seen
    assert seen["queue_offline"]["others_s"] < 30, seen
    assert seen["queue_offline"]["closed_s"] < 40, seen
    assert seen["override_frees"]["freed_s"] < 2 * LOOK_AGAIN_S, seen
    assert (seen["many_wait"]["groups"], seen["many_wait"]["went_s"] < 2 * LOOK_AGAIN_S) == (1, True), seen
    early, late = seen["bound_early_and_late"]["early"], seen["bound_early_and_late"]["late"]
    assert (late["all_s"] < early["all_s"], late["idle_s"] < early["idle_s"]) == (True, True), seen
    assert (seen["all_bound_late"]["left"], seen["all_bound_late"]["beside"] < 0.1) == (0, True), seen
    shares = seen["shares"]
    assert abs(shares["part_of_the_large_one"] - 0.7) < 0.1, seen
    assert (shares["busy"] > 0.6, shares["busy_alone"] > 0.6, shares["beside"] < 0.1) == (True, True, True), seen
    assert (seen["many_queues"]["first_s"] < LOOK_AGAIN_S, seen["many_queues"]["beside"] < 0.1) == (True, True), seen


@pytest.mark.long
@pytest.mark.servers
def test_thousands_of_tasks_that_wait_for_one_criterion_go_on_when_it_passes(own_database: dict[str, str]) -> None:
    seen = played(own_database, "many_wait=2000", longest_s=1800)["many_wait"]
    assert (seen["groups"], seen["went_s"] < 2 * LOOK_AGAIN_S) == (1, True), seen
