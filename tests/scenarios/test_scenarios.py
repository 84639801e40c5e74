"""Scenarios on one running system, by default configuration: slots are kept busy, nothing starves, waits end with their cause."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker_site.roof.embedded import Services

pytestmark = pytest.mark.servers
ROOT = Path(__file__).resolve().parents[2]
LOOK_AGAIN_S = 10.0
Seen = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def seen(services: Services, redis_url: str) -> Seen:
    """What was seen of each scenario, all of them played on one system."""
    environment = {**os.environ, "DATABASE_URL": services.database_url, "REDIS_URL": redis_url}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    command = [sys.executable, "-m", "tests.scenarios.stage"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    return {line["scenario"]: line for line in map(json.loads, ran.stdout.strip().splitlines())}


def test_few_slots_are_kept_busy_by_many_short_jobs(seen: Seen) -> None:
    assert seen["few_slots"]["busy"] > 0.5, seen["few_slots"]


def test_short_tasks_do_not_wait_for_a_long_one(seen: Seen) -> None:
    assert seen["long_and_short"]["left_of_the_long_one"] > 20, seen["long_and_short"]


def test_jobs_leave_a_queue_that_went_offline_and_hold_up_nobody(seen: Seen) -> None:
    assert seen["queue_offline"]["others_s"] < 15, seen["queue_offline"]
    assert seen["queue_offline"]["closed_s"] < 40, seen["queue_offline"]


def test_an_override_frees_the_tasks_that_wait_for_it(seen: Seen) -> None:
    assert seen["override_frees"]["freed_s"] < LOOK_AGAIN_S, seen["override_frees"]


def test_tasks_that_wait_for_one_criterion_are_one_group_and_all_run(seen: Seen) -> None:
    assert seen["many_wait"]["groups"] == 1, seen["many_wait"]
    assert seen["many_wait"]["went_s"] < LOOK_AGAIN_S, seen["many_wait"]
