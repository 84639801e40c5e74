"""Files at the edges of splitting: all too short, more in one boundary than are taken at once. No task waits for ever on them."""

from __future__ import annotations

import pytest

from brokerage.models import JobSpec
from brokerage.rules.placement.usable_input import files_wanted
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import run_agents, run_jobs
from workqueues.models import CatalogueFile, Dataset
from workqueues.rules.jobs.split_rule import parse

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_task_whose_files_are_all_too_few_for_a_job_ends_without_jobs() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 1)
    task = submitted(reading("t", "in.data", nFilesPerJob=2, skipShortOutput=True))
    run_agents(3)
    task.refresh_from_db()
    assert (JobSpec.objects.count(), task.status) == (0, "failed")


def test_a_boundary_with_more_files_than_are_taken_for_the_free_room_is_one_job() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 450)
    CatalogueFile.objects.update(boundary_id=1)
    task = submitted(reading("t", "in.data", nFilesPerJob=None, groupBoundaryID=4))
    run_agents(3)
    task.refresh_from_db()
    assert files_wanted(parse(task.split_rule), Dataset.objects.get(task=task, type="input"), 200, jobs=1) == 450
    assert JobSpec.objects.count() == 1
    run_jobs(queue)
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "done"


def test_of_numbered_records_as_many_are_taken_as_jobs_may_be_made() -> None:
    grid("ALPHA")
    task = submitted(parameters("t", nEvents=5000, nEventsPerJob=1))
    run_agents(1, ("refine", "feed"))
    task.refresh_from_db()
    assert files_wanted(parse(task.split_rule), Dataset.objects.get(task=task, type="pseudo_input"), 200, jobs=250) == 250
