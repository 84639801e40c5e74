"""Chains that are submitted at once: who writes an input becomes a parent, which delays and never kills."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage.models import ComputingQueue
from tests.api.people import Person, faults, person
from tests.builders import grid, parameters, reading
from tests.flow.steps import BAD, run_agents, run_jobs
from workqueues.models import Task

pytestmark = pytest.mark.django_db

ONE_JOB = {"nEvents": 10, "maxAttempt": 1}


@pytest.fixture
def queue() -> ComputingQueue:
    return grid("ALPHA")[0]


@pytest.fixture
def ada(db: None) -> Person:
    return person("ada", ("demo", "submitter"))


def task_of(answer: Any) -> Task:
    assert answer.status_code == 201, answer.content
    return Task.objects.get(id=answer.json()["id"])


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def looked_again() -> None:
    """What rests has rested."""
    Task.objects.filter(status="pending").update(next_look_at="2020-01-01T00:00:00Z")
    run_agents()


def test_a_chain_submitted_at_once_runs_one_after_the_other(queue: ComputingQueue, ada: Person) -> None:
    first = task_of(ada.submit(parameters("first", **ONE_JOB)))
    answer = ada.submit(reading("second", "first.EVT"))
    second = task_of(answer)
    assert answer.json()["parents"] == [first.id]
    assert answer.json()["parent_tid"] == second.id
    note = f"task {first.id} writes the input first.EVT and so is a parent: this task"
    assert f"{note} waits for its end" in answer.json()["notes"]
    eager = ada.submit(reading("eager", "first.EVT", noWaitParent=True))
    assert f"{note} does not wait for its end" in eager.json()["notes"]
    Task.objects.filter(id=task_of(eager).id).delete()
    run_agents()
    assert (status(second), status(first)) == ("pending", "running")
    assert second.error_dialog == f"waiting for task {first.id}, which writes the input first.EVT and is running" or (
        f"waiting for task {first.id}" in second.error_dialog
    )
    assert second.frozen_time is None
    run_jobs(queue)
    run_agents(4)
    assert status(first) == "done"
    run_jobs(queue)
    run_agents(2)
    assert status(second) == "done"
    assert second.datasets.get(type="input").n_files_finished == 1


def test_the_end_of_the_writer_wakes_who_waits_for_it(queue: ComputingQueue, ada: Person) -> None:
    task_of(ada.submit(parameters("first", **ONE_JOB)))
    second = task_of(ada.submit(reading("second", "first.EVT")))
    run_agents()
    assert second.next_look_at is None
    run_jobs(queue)
    run_agents(1, ["finish"])
    run_agents(1, ["finish", "wake", "refine", "feed"])
    assert status(second) in ("ready", "running")


@pytest.mark.parametrize("how", ["failed", "killed", "killed at once"])
def test_the_bad_end_of_a_writer_never_kills_who_waits_for_it(queue: ComputingQueue, ada: Person, how: str) -> None:
    first = task_of(ada.submit(parameters("first", **ONE_JOB)))
    second = task_of(ada.submit(reading("second", "first.EVT")))
    if how != "killed at once":
        run_agents()
    if how == "failed":
        run_jobs(queue, BAD)
    else:
        assert ada.post(f"tasks/{first.id}/kill/").status_code == 202
    run_agents(3)
    looked_again()
    assert status(first) in ("failed", "aborted")
    assert status(second) == "pending"
    assert f"task {first.id}, which was to write it, is {first.status}" in second.error_dialog
    assert second.frozen_time is not None, "this wait has an end"
    third = task_of(ada.submit(parameters("third", **ONE_JOB)))
    Task.objects.filter(id=third.id).update(user_name="ada")
    assert ada.post(f"tasks/{second.id}/kill/").status_code == 202


def test_a_task_with_what_a_bad_writer_left_goes_on_with_it(queue: ComputingQueue, ada: Person) -> None:
    first = task_of(ada.submit(parameters("first", nEvents=20, maxAttempt=1)))
    second = task_of(ada.submit(reading("second", "first.EVT")))
    run_agents()
    run_jobs_one_bad(queue)
    run_agents(3)
    looked_again()
    run_jobs(queue)
    run_agents(3)
    assert status(first) == "finished"
    assert status(second) == "done"


def run_jobs_one_bad(queue: ComputingQueue) -> None:
    from tests.flow.steps import end, take

    end(take(queue), BAD)
    end(take(queue))


def test_writers_are_those_of_the_same_owner_or_group_in_the_vo(ada: Person) -> None:
    bob = person("bob", ("demo", "submitter"))
    eve = person("ada2", ("other", "submitter"))
    first = task_of(ada.submit(parameters("first", workingGroup="higgs")))
    assert faults(bob.submit(reading("b", "first.EVT", userName=None))) == {("jobParameters[0].dataset", "dataset")}
    assert faults(bob.submit(reading("b", "first.EVT", userName=None, workingGroup="top"))) == {
        ("jobParameters[0].dataset", "dataset")
    }
    assert faults(eve.submit(reading("e", "first.EVT", userName=None, vo="other", workingGroup="higgs"))) == {
        ("jobParameters[0].dataset", "dataset")
    }
    assert bob.submit(reading("b", "first.EVT", userName=None, workingGroup="higgs")).json()["parents"] == [first.id]


def test_a_task_may_have_several_inferred_parents_and_a_named_one(ada: Person) -> None:
    ids = [task_of(ada.submit(parameters(name))).id for name in ("one", "two", "three")]
    answer = ada.submit(reading("all", "one.EVT,two.EVT,three.EVT", parentTaskName="two"))
    assert answer.json()["parents"] == ids
    assert answer.json()["parent_tid"] == ids[1]
    assert len([note for note in answer.json()["notes"] if "so is a parent" in note]) == 2


def test_an_ended_writer_is_no_parent(queue: ComputingQueue, ada: Person) -> None:
    task_of(ada.submit(parameters("first", **ONE_JOB)))
    run_agents()
    run_jobs(queue)
    run_agents()
    assert ada.submit(reading("second", "first.EVT")).json()["parents"] == []
