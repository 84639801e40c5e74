"""Inputs that are checked: what the parent is known to have lost is not read, though the catalogue still has it."""

from __future__ import annotations

import pytest

from brokerage.models import ComputingQueue
from tests.builders import grid, parameters, reading, submitted
from tests.flow.steps import run_agents, run_jobs
from workqueues.models import File, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def parent() -> Task:
    """Done, with four files, one of which is known to be lost."""
    queue: ComputingQueue = grid()[0]
    task = submitted(parameters("p"))
    run_agents()
    assert run_jobs(queue) == 4
    run_agents(2)
    File.objects.filter(id=min(File.objects.filter(task=task, type="output").values_list("id", flat=True))).update(
        lost_at="2026-01-01T00:00Z"
    )
    return task


def n_files(task: Task) -> int:
    return File.objects.filter(task=task, type="input").count()


@pytest.mark.parametrize(("wish", "n"), [({}, 4), ({"check": True}, 3), ({"attributes": "cc"}, 3)])
def test_files_that_the_parent_lost_are_left_out_where_the_input_is_checked(
    parent: Task, wish: dict[str, object], n: int
) -> None:
    params = reading("c", "p.EVT", parentTaskName="p")
    params["jobParameters"][0] |= wish
    child = submitted(params)
    run_agents()
    assert n_files(child) == n


def test_masters_of_production_tasks_are_checked_always(parent: Task) -> None:
    child = submitted(reading("c", "p.EVT", parentTaskName="p", prodSourceLabel="managed"))
    run_agents()
    assert n_files(child) == 3


def test_datasets_that_the_parent_did_not_write_are_read_as_the_catalogue_has_them(parent: Task) -> None:
    params = reading("c", "p.EVT")
    params["jobParameters"][0] |= {"check": True}
    child = submitted(params)
    run_agents()
    assert n_files(child) == 4
