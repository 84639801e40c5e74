"""Input datasets that are deleted after a task was submitted, and that it skips (ignoreMissingInDS)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, let_confirm, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import CatalogueDataset, Dataset, File, Task

HELD = "the catalogue does not have it any more; looked for again before it counts as lost"
pytestmark = pytest.mark.django_db


def two_inputs(**more: Any) -> Task:
    """A task that reads two files of each of two datasets, one file a job."""
    for name in ("in.one", "in.two"):
        catalogue_dataset(name, 2)
    params = reading("t", "in.one,in.two", **{"nFilesPerJob": 1, **more})
    return submitted(params)


def delete(name: str) -> None:
    CatalogueDataset.objects.filter(name=name).delete()


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def test_a_dataset_that_is_deleted_before_it_is_read_is_skipped_and_the_task_is_done_without_it() -> None:
    (queue,) = grid()
    task = two_inputs(ignoreMissingInDS=True)
    delete("in.two")
    run_agents()
    assert run_jobs(queue) == 2
    run_agents(3)
    assert status(task) == "done"
    assert Dataset.objects.get(dataset_name="in.two").status == "done"


def test_without_the_wish_the_task_is_broken() -> None:
    grid()
    task = two_inputs()
    delete("in.two")
    run_agents()
    assert status(task) == "broken"


@pytest.mark.parametrize("label", ["user", "managed"])
def test_files_of_a_dataset_that_is_deleted_after_it_was_read_are_lost_and_the_others_processed(label: str) -> None:
    (queue,) = grid()
    task = two_inputs(ignoreMissingInDS=True, prodSourceLabel=label)
    run_agents(1, ("refine", "feed"))
    delete("in.one")
    run_agents()
    assert run_jobs(queue) == 2
    assert set(File.objects.filter(dataset__dataset_name="in.one").values_list("held", flat=True)) == {HELD}
    let_confirm()
    run_agents(3)
    assert (status(task), task.error_dialog) == ("finished", "2 of 4 files were processed, 2 are lost or damaged")


def test_a_task_that_is_run_again_goes_on_without_the_dataset_that_is_gone() -> None:
    (queue,) = grid()
    task = two_inputs(maxAttempt=1)
    run_agents(1)
    end(take(queue), BAD)
    run_jobs(queue)
    run_agents(3)
    assert status(task) == "finished"
    delete("in.one")
    catalogue_dataset("in.three", 1)
    command(task.id, "incexec", "user:ada", changes={"dsForIN": "in.three"})
    run_agents()
    assert (status(task), task.error_dialog) == (
        "pending", "jobParameters[0].dataset: the catalogue has no dataset in.one"
    )  # fmt: skip
    command(task.id, "kill", "user:ada")
    run_agents(3)
    command(task.id, "incexec", "user:ada", changes={"ignoreMissingInDS": True})
    run_agents()
    let_confirm()
    run_agents()
    assert run_jobs(queue) == 1
    run_agents(3)
    assert (status(task), task.error_dialog) == ("finished", "4 of 5 files were processed, 1 is lost or damaged")
