"""Which files of its inputs a task uses: those that it names, and none that other tasks have used."""

from __future__ import annotations

import pytest

from tests.builders import catalogue_dataset, grid, more_files, parameters, reading, submitted
from tests.flow.steps import end, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import File, Task

pytestmark = pytest.mark.django_db


def lfns(task: Task, type_: str = "input") -> list[str]:
    return [
        lfn.rpartition(".")[2] for lfn in File.objects.filter(task=task, type=type_).order_by("id").values_list("lfn", flat=True)
    ]


def names(task: Task) -> set[str]:
    return set(File.objects.filter(task=task, type="input").values_list("lfn", flat=True))


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def test_files_that_other_tasks_used_are_left_out_and_the_rest_makes_the_task_done() -> None:
    (queue,) = grid()
    catalogue_dataset("in.data", 6)
    first = submitted(reading("first", "in.data", nFiles=2, nFilesPerJob=1, maxAttempt=1))
    run_agents()
    end(take(queue))
    second = submitted(reading("second", "in.data", nFiles=2, skipFilesUsedBy=first.id))
    run_agents()
    assert lfns(second) == ["000002", "000003"], "one is processed, the other one in a job; nFiles counts what is left"
    third = submitted(reading("third", "in.data", skipFilesUsedBy=[first.id, second.id]))
    run_agents()
    assert lfns(third) == ["000004", "000005"]
    run_jobs(queue)
    run_agents(3)
    assert {status(t) for t in (first, second, third)} == {"done"}
    fourth = submitted(reading("fourth", "in.data", skipFilesUsedBy=f"{first.id}, {second.id}, {third.id}"))
    run_agents()
    assert status(fourth) == "broken"
    assert fourth.error_dialog.startswith("the input has no files but 6 that tasks of skipFilesUsedBy have used")


def test_a_sequence_goes_on_behind_the_numbers_that_other_tasks_used() -> None:
    (queue,) = grid()
    first = submitted(parameters("first"))
    run_agents()
    run_jobs(queue)
    run_agents(3)
    assert status(first) == "done"
    second = submitted(parameters("second", skipFilesUsedBy=first.id))
    run_agents()
    assert lfns(first, "pseudo_input") == [f"pseudo_{n:06d}" for n in (1, 2, 3, 4)]
    assert lfns(second, "pseudo_input") == [f"pseudo_{n:06d}" for n in (5, 6, 7, 8)]


def test_only_the_files_that_an_item_names_are_used_and_each_must_be_there() -> None:
    grid()
    catalogue_dataset("in.data", 4)
    params = reading("t", "in.data")
    params["jobParameters"][0]["files"] = ["in.data.000003", "in.data.000001"]
    task = submitted(params)
    run_agents()
    assert (status(task), lfns(task)) == ("running", ["000001", "000003"])
    params = reading("u", "in.data")
    params["jobParameters"][0]["files"] = "in.data.000003,in.data.000009"
    strange = submitted(params)
    run_agents()
    assert status(strange) == "broken"
    assert "in.data has no file in.data.000009, which the task names in files" in strange.error_dialog


def test_a_file_that_was_made_again_is_used_in_place_of_the_one_that_is_named() -> None:
    (queue,) = grid()
    catalogue_dataset("in.data", 0)
    more_files("in.data", "a.root.1", "b.root.1")
    params = reading("t", "in.data", nFilesPerJob=1, useInFilesWithNewAttemptNr=True)
    params["jobParameters"][0]["files"] = ["a.root.1", "b.root.1"]
    task = submitted(params)
    run_agents()
    end(take(queue))
    more_files("in.data", "a.root.2", "b.root.2")
    run_jobs(queue)
    run_agents(3)
    assert status(task) == "done"
    command(task.id, "incexec", "user:ada")
    run_agents(3)
    assert (status(task), names(task)) == ("done", {"a.root.1", "b.root.1"}), "what it has processed is not processed again"
    params = reading("u", "in.data", useInFilesWithNewAttemptNr=True)
    params["jobParameters"][0]["files"] = ["a.root.1", "b.root.1"]
    later = submitted(params)
    run_agents()
    assert names(later) == {"a.root.2", "b.root.2"}
