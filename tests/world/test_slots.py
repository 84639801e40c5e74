"""What jobs ask of a pilot: no more than the queue was found to give, and enough for each of them."""

from __future__ import annotations

from typing import Any

import pytest

from broker_site.foundation.agency.run import run_agent
from brokerage.models import ComputingQueue, TaskQueue
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import File, Task

pytestmark = pytest.mark.django_db


def made(**more: Any) -> list[dict[str, Any]]:
    """What the jobs of a task at one queue ask for."""
    task = submitted(parameters(**more))
    run_agents()
    task.refresh_from_db()
    assert task.status == "running", task.error_dialog
    return [{**row} for row in TaskQueue.objects.order_by("walltime_s").values("ram_mb", "disk_mb", "walltime_s")]


def test_a_job_asks_for_the_memory_that_the_queue_was_found_to_give() -> None:
    grid("ALPHA")
    (asked,) = made(ramCount=8500)  # 7,650 MB with the factor 0.9, of the 8,000 MB of a slot
    assert asked["ram_mb"] == 7700


def test_a_job_asks_for_the_memory_that_earlier_tries_of_its_files_needed() -> None:
    grid("ALPHA")
    task = submitted(parameters(ramCount=1000))
    for name in ("refine", "feed"):
        run_agent(name, looked=True)
    File.objects.filter(task_id=task.id).update(ram_count=4000)
    run_agents()
    assert Task.objects.get(id=task.id).status == "running"
    assert TaskQueue.objects.get().ram_mb == 3600


def test_the_scratch_disk_of_a_job_holds_its_output_too() -> None:
    grid("ALPHA")
    (asked,) = made(outDiskCount=100, outDiskUnit="MBPerEvent", workDiskCount=300, workDiskUnit="MB")
    assert asked["disk_mb"] == 1500  # 10 events of 100 MB, and 300 MB of work, in steps of 500


def test_no_job_asks_for_more_scratch_disk_than_there_is() -> None:
    grid("ALPHA")
    ComputingQueue.objects.update(maxwdir=1400)
    (asked,) = made(outDiskCount=100, outDiskUnit="MBPerEvent", workDiskCount=300, workDiskUnit="MB")
    assert asked["disk_mb"] == 1400


def test_the_walltime_of_a_job_is_that_of_its_own_events() -> None:
    grid("ALPHA")
    asked = made(nEvents=25, nEventsPerJob=10, cpuTime=1800, cpuTimeUnit="HS06sPerEvent", cpuEfficiency=100, baseWalltime=0)
    assert [group["walltime_s"] for group in asked] == [1110, 2169]
