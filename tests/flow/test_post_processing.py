"""What becomes of outputs at the end of their task: they are compared with the catalogue, and transient ones go after a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from brokerage.ledger.transfers.lifetimes import remove_expired
from brokerage.models import ComputingQueue, ReplicaChange
from brokerage.queries.invariants import look
from tests.api.people import faults as faults_of
from tests.api.people import person
from tests.builders import grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.catalogue import DatasetKey, catalogue
from workqueues.ledger.commands import command
from workqueues.models import CatalogueDataset, CatalogueFile, File, FileChange, Replica, Task
from workqueues.rules.jobs.post_processors import POST_PROCESSORS, EndingTask, post_processor

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> ComputingQueue:
    return grid("ALPHA")[0]


def faults() -> list[str]:
    return [f"{found.invariant.name}: {example}" for found in look() for example in found.examples]


def ended(task: Task) -> tuple[str, str]:
    run_agents()
    task.refresh_from_db()
    return task.status, task.error_dialog


def made(params: dict[str, Any], queue: ComputingQueue) -> Task:
    task = submitted(params)
    run_agents()
    run_jobs(queue)
    return task


def test_a_task_whose_outputs_are_there_ends_without_a_word(queue: ComputingQueue) -> None:
    assert ended(made(parameters("t", nEvents=20), queue)) == ("done", "")
    assert not FileChange.objects.exists()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("entry", "the catalogue does not have it any more"),
        ("checksum", "the catalogue has another size or checksum for it"),
        ("copy", "no copy of it is left"),
        ("bad", "no copy of it is left"),
    ],
)
def test_an_output_that_is_gone_at_the_end_is_known_as_lost_and_the_task_says_so(
    queue: ComputingQueue, damage: str, why: str
) -> None:
    task = made(parameters("t", nEvents=20), queue)
    file = CatalogueFile.objects.filter(dataset__name="t.EVT").first()
    assert file is not None
    copies = Replica.objects.filter(file=file)
    if damage == "checksum":
        CatalogueFile.objects.filter(id=file.id).update(checksum="0000000b")
    elif damage == "bad":
        copies.update(state="bad")
    else:
        copies.delete()
    if damage == "entry":
        file.delete()
    status, told = ended(task)
    assert status == "done"
    assert told.endswith("1 of its outputs is gone, as their history tells")
    lost = File.objects.get(lost_at__isnull=False)
    assert lost.type == "output"
    assert list(FileChange.objects.filter(file_id=lost.id).values_list("new", "why")) == [("lost", why)]
    assert faults() == []


def transient(name: str = "t") -> dict[str, Any]:
    params = parameters(name, nEvents=20, nEventsPerJob=10, maxAttempt=1)
    params["jobParameters"][2]["transient"] = 1
    return params


def let_expire() -> None:
    CatalogueDataset.objects.filter(expires_at__isnull=False).update(expires_at=F("expires_at") - timedelta(days=14, hours=1))


def visible(name: str) -> int:
    return len(catalogue().files(DatasetKey("demo", name)))


def test_a_transient_dataset_goes_two_weeks_after_its_task_and_the_others_stay(queue: ComputingQueue) -> None:
    assert ended(made(transient(), queue))[0] == "done"
    assert visible("t.EVT") == 2
    run_agents(1, ("reap",))
    assert visible("t.EVT") == 2
    let_expire()
    run_agents(1, ("reap",))
    assert (visible("t.EVT"), visible("t.log")) == (0, 2)
    assert set(Replica.objects.filter(file__dataset__name="t.EVT").values_list("state", flat=True)) == {"deleting"}
    assert ReplicaChange.objects.filter(what="deleting").count() == 2
    assert FileChange.objects.filter(new="removed", why="its dataset is transient, and its time was over").count() == 2
    assert CatalogueDataset.objects.get(name="t.EVT").state == "expired"
    assert faults() == []
    Replica.objects.filter(state="deleting").delete()  # the agent that deletes has been there
    run_agents(1, ("reap",))
    assert not CatalogueFile.objects.filter(dataset__name="t.EVT").exists()
    assert faults() == []


def test_it_is_kept_while_a_task_reads_it(queue: ComputingQueue) -> None:
    ended(made(transient("parent"), queue))
    child = submitted(reading("child", "parent.EVT"))
    run_agents()
    let_expire()
    run_agents(1, ("reap",))
    assert visible("parent.EVT") == 2
    run_jobs(queue)
    assert ended(child)[0] == "done"
    run_agents(1, ("reap",))
    assert visible("parent.EVT") == 0
    assert faults() == []


def test_a_retry_makes_its_time_begin_anew(queue: ComputingQueue) -> None:
    task = submitted(transient())
    run_agents()
    end(take(queue))
    end(take(queue), BAD)
    assert ended(task)[0] == "finished"
    let_expire()
    command(task.id, "retry", "user:ada")
    run_agents(1, ("command", "reap"))
    assert visible("t.EVT") == 1
    run_agents()
    run_jobs(queue)
    assert ended(task)[0] == "done"
    run_agents(1, ("reap",))
    assert visible("t.EVT") == 2


def test_many_files_go_in_several_runs(queue: ComputingQueue) -> None:
    ended(made(transient(), queue))
    let_expire()
    assert [remove_expired(10, 1, "agent:reap") for _ in range(3)] == [1, 1, 0]
    assert visible("t.EVT") == 0


def test_a_transient_output_of_a_task_that_failed_stays(queue: ComputingQueue) -> None:
    task = submitted(transient())
    run_agents()
    run_jobs(queue, BAD)
    assert ended(task)[0] == "failed"
    assert CatalogueDataset.objects.get(name="t.EVT").expires_at is None


@pytest.fixture
def announced() -> Iterator[list[EndingTask]]:
    """A package brings a post-processor that fails the first time; the tasks that it was told of."""
    told: list[EndingTask] = []
    with suppress(Over), POST_PROCESSORS.all_or_nothing():

        @post_processor("announce")
        def announce(task: EndingTask) -> str:
            told.append(task)
            if len(told) == 1:
                raise OSError("the book of runs does not answer")
            return f"announced in {task.settings['book']}"

        yield told
        raise Over


class Over(Exception):
    """What was declared for the test goes again."""


def test_a_post_processor_is_told_of_the_end_and_called_again_until_it_answers(
    queue: ComputingQueue, announced: list[EndingTask]
) -> None:
    task = made(parameters("t", nEvents=10, outputPostProcessing={"name": "announce", "book": "runs"}), queue)
    status, told = ended(task)
    assert status == "prepared"
    assert "the book of runs does not answer" in told
    Task.objects.update(next_look_at=None)
    assert ended(task) == ("done", "its file was processed; announced in runs")
    assert {(t.id, t.vo, t.user, t.status) for t in announced} == {(task.id, "demo", "ada", "done")}
    assert announced[-1].settings == {"book": "runs"}
    assert sorted(announced[-1].outputs) == ["t.EVT", "t.log"]


def test_a_post_processor_that_nobody_brings_is_refused_at_submission(announced: list[EndingTask]) -> None:
    grid("ALPHA")
    ada = person("ada", ("demo", "submitter"))
    answer = ada.submit(parameters(outputPostProcessing={"name": "anounce"}))
    assert faults_of(answer) == {("outputPostProcessing", "exists")}
    assert answer.json()["errors"][0]["message"] == "no post-processor anounce is installed; the nearest name is announce"
    assert faults_of(ada.submit(parameters(outputPostProcessing={"book": "x"}))) == {("outputPostProcessing", "required")}
    assert faults_of(ada.submit(parameters(outputPostProcessing="announce"))) == {("outputPostProcessing", "type")}
    assert ada.submit(parameters(outputPostProcessing={"name": "announce"})).status_code == 201
