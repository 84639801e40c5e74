"""Tasks with much input that lies only at busy queues make no jobs until one of these is free."""

from __future__ import annotations

from typing import Any

import pytest

from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, Job
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import headline
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import run_agents, run_jobs
from workqueues.models import CatalogueFile, Replica, Task

pytestmark = pytest.mark.django_db

MAKING = ("refine", "feed", "assign", "generate")


def limit(priority: int | None = 600) -> None:
    set_override("task_withholder", "LIMIT_PRIORITY_user", priority, who="ada", why="test")


def busy(**more: Any) -> tuple[Task, ComputingQueue]:
    """A task that reads much at ALPHA, where more jobs of another one wait than may; BETA has nothing to do."""
    alpha, _ = grid("ALPHA", "BETA")
    set_override("jobbroker", "NQUEUELIMITSITE", 3, who="ada", why="test")
    submitted(parameters("other", nEvents=40, site="ALPHA", userName="bob"))
    run_agents(3, MAKING)
    set_override("jobbroker", "NQUEUELIMITSITE", 2, who="ada", why="test")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data", **{"ioIntensity": 500, "ioIntensityUnit": "kBPerS", **more}))
    run_agents(1, ("refine", "feed", "assign"))
    return task, alpha


def status(task: Task) -> str:
    run_agents(1, ["watch"])
    task.refresh_from_db()
    return task.status


def test_it_waits_until_a_queue_with_its_input_is_free_and_says_so() -> None:
    task, alpha = busy()
    limit()
    assert status(task) == "throttled"
    assert headline(task_status(task)) == "Throttled: its input is only at queues that are busy or take no jobs: ALPHA"
    run_agents()
    assert status(task) == "throttled"
    run_jobs(alpha)
    assert status(task) == "ready"
    run_agents(2, MAKING)
    assert Job.objects.filter(task_id=task.id).exists()


def test_open_jobs_wait_at_each_of_their_queues_as_a_part() -> None:
    alpha, _ = grid("ALPHA", "BETA")
    submitted(parameters("other", nEvents=60, userName="bob", binding="late"))
    run_agents(3, MAKING)
    assert Job.objects.filter(computing_queue=None).count() == 6
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data", ioIntensity=500, ioIntensityUnit="kBPerS"))
    run_agents(1, ("refine", "feed", "assign"))
    limit()
    set_override("jobbroker", "NQUEUELIMITSITE", 3, who="ada", why="test")
    assert status(task) == "ready", "half of six wait at each"
    set_override("jobbroker", "NQUEUELIMITSITE", 2, who="ada", why="test")
    assert status(task) == "throttled"
    run_jobs(alpha)
    assert status(task) == "ready"


def test_it_waits_for_a_queue_that_takes_no_jobs_and_goes_on_where_its_priority_says_so() -> None:
    task, alpha = busy()
    run_jobs(alpha)
    limit()
    assert status(task) == "ready"
    ComputingQueue.objects.filter(name="ALPHA").update(status="brokeroff")
    assert status(task) == "throttled"
    limit(500)
    assert status(task) == "ready", "its priority is no lower than this"


@pytest.mark.parametrize("more", [{"ioIntensity": 100}, {"taskPriority": 600}, {"prodSourceLabel": "panda"}, {}])
def test_these_go_on(more: dict[str, Any]) -> None:
    task, _ = busy(**more)
    if more:
        limit()
    assert status(task) == "ready"


def test_input_that_another_queue_has_too_withholds_nothing() -> None:
    task, _ = busy()
    limit()
    assert status(task) == "throttled"
    catalogue_copies("BETA_DISK")
    assert status(task) == "ready"


def catalogue_copies(storage: str) -> None:
    """All files of the catalogue are there too."""
    Replica.objects.bulk_create(Replica(file=file, storage=storage) for file in CatalogueFile.objects.all())
