"""A task's `destination`: when the task has ended its datasets are copied there, and everybody sees how far that is."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage.agents import finish as finish_agent
from brokerage.ledger.transfers.destinations import send_datasets
from brokerage.models import ComputingQueue, Site, StorageEndpoint, Transfer, TransferWish
from brokerage.queries.dataset_places import PlaceOfDataset, dataset_places
from tests.api.people import person
from tests.builders import grid, parameters, submitted
from tests.flow.collecting import PRODUCTION, bring, faults, lose, nucleus_grid, running
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import Dataset, Replica, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> ComputingQueue:
    """ALPHA, the nucleus SITE_BETA, and a storage far from both."""
    made = nucleus_grid()
    StorageEndpoint.objects.create(name="FAR_DISK", site=Site.objects.create(name="SITE_FAR"), free_gb=1)
    return made


def done(params: dict[str, Any], queue: ComputingQueue) -> Task:
    task = submitted(params)
    run_agents()
    run_jobs(queue)
    run_agents()
    task.refresh_from_db()
    return task


def test_the_datasets_of_a_task_are_copied_to_its_destination_when_it_has_ended(queue: ComputingQueue) -> None:
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    task = submitted(parameters("t", nEvents=20, destination="FAR_DISK"))
    run_agents()
    assert set(Dataset.objects.filter(type__in=["output", "log"]).values_list("destination", flat=True)) == {"FAR_DISK"}
    run_jobs(queue)
    assert not Transfer.objects.exists(), "no job waits for it"
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert set(Transfer.objects.values_list("destination", "activity", "ended_at")) == {("FAR_DISK", "Analysis Output", None)}
    assert set(TransferWish.objects.values_list("role", "job_id", "task_id", "owner")) == {("dataset", None, task.id, "ada")}
    out = Dataset.objects.get(dataset_name="t.EVT")
    assert dataset_places([out.id]) == {out.id: [PlaceOfDataset("FAR_DISK", "destination", 2, 0, 2, 0)]}
    assert bring(file__dataset__name="t.EVT") == 2
    assert dataset_places([out.id])[out.id][0].complete
    assert Replica.objects.filter(storage="FAR_DISK", kind="origin", state="available").count() == 2
    assert faults() == []


def test_what_cannot_be_brought_changes_nothing_of_the_task_and_is_counted(queue: ComputingQueue) -> None:
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    task = done(parameters("t", nEvents=10, destination="FAR_DISK"), queue)
    lose(file__dataset__name="t.EVT")
    task.refresh_from_db()
    assert task.status == "done"
    out = Dataset.objects.get(dataset_name="t.EVT")
    (place,) = dataset_places([out.id])[out.id]
    assert (place.there, place.on_the_way, place.failed, place.complete) == (0, 0, 1, False)


def test_an_output_with_a_destination_of_its_own_goes_there_and_the_others_stay(queue: ComputingQueue) -> None:
    params = parameters("t", nEvents=10)
    params["jobParameters"][2]["destination"] = "FAR_DISK"
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    done(params, queue)
    assert list(Transfer.objects.values_list("file__dataset__name", flat=True)) == ["t.EVT"]


def test_a_copy_that_was_to_go_from_where_it_was_made_stays_where_the_destination_is_that_place(queue: ComputingQueue) -> None:
    task = running(parameters("t", nEvents=10, destination="ALPHA_DISK", **PRODUCTION))
    run_jobs(queue)
    bring()
    out = Replica.objects.filter(file__dataset__name="t.EVT", storage="ALPHA_DISK")
    assert set(out.values_list("kind", flat=True)) == {"cache"}, "it is at the nucleus"
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert set(out.values_list("kind", "keep_until")) == {("origin", None)}
    assert faults() == []


def test_outputs_collected_at_the_nucleus_go_on_to_their_destination(queue: ComputingQueue) -> None:
    task = running(parameters("t", nEvents=10, destination="FAR_DISK", **PRODUCTION))
    run_jobs(queue)
    out = Dataset.objects.get(dataset_name="t.EVT")
    places = dataset_places([out.id])[out.id]
    assert [(p.storage, p.role, p.on_the_way) for p in places] == [("BETA_DISK", "nucleus", 1), ("FAR_DISK", "destination", 0)]
    bring()
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert set(Transfer.objects.filter(ended_at=None).values_list("destination", flat=True)) == {"FAR_DISK"}
    bring()
    assert all(place.complete for place in dataset_places([out.id])[out.id])
    assert faults() == []


def test_asking_again_asks_for_nothing_twice_and_a_retry_sends_what_is_new(queue: ComputingQueue) -> None:
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    task = submitted(parameters("t", nEvents=20, nEventsPerJob=10, maxAttempt=1, destination="FAR_DISK"))
    run_agents()
    end(take(queue))
    end(take(queue), BAD)
    run_agents()
    task.refresh_from_db()
    assert task.status == "finished"
    assert send_datasets(task, "agent:finish") == 0
    bring()
    command(task.id, "retry", "user:ada")
    run_agents()
    run_jobs(queue)
    run_agents()
    assert Transfer.objects.filter(ended_at=None).count() == 2
    bring()
    assert Replica.objects.filter(storage="FAR_DISK").count() == 4


def test_a_task_that_fails_sends_nothing(queue: ComputingQueue) -> None:
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    task = submitted(parameters("t", nEvents=10, maxAttempt=1, destination="FAR_DISK"))
    run_agents()
    run_jobs(queue, BAD)
    run_agents()
    task.refresh_from_db()
    assert task.status == "failed"
    assert not Transfer.objects.exists()


def test_more_files_than_are_asked_for_at_once_all_get_their_wish(queue: ComputingQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    monkeypatch.setattr("brokerage.ledger.transfers.destinations.AT_ONCE", 3)
    done(parameters("t", nEvents=50, destination="FAR_DISK"), queue)
    assert Transfer.objects.count() == 10


def test_a_run_that_dies_before_the_task_has_ended_loses_no_wish(queue: ComputingQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    task = submitted(parameters("t", nEvents=10, destination="FAR_DISK"))
    run_agents()
    run_jobs(queue)
    with monkeypatch.context() as broken:
        broken.setattr(finish_agent, "end_task", _die)
        run_agents(1, ("finish",))
    Task.objects.update(next_look_at=None)
    task.refresh_from_db()
    assert task.status == "prepared"
    run_agents(2, ("wake", "finish"))
    task.refresh_from_db()
    assert task.status == "done", task.error_dialog
    assert Transfer.objects.count() == 2


def _die(*_: object) -> None:
    raise RuntimeError("the server is gone")


def test_what_is_at_its_destination_already_is_not_copied() -> None:
    (queue,) = grid("ALPHA")
    task = done(parameters("t", nEvents=10, destination="ALPHA_DISK"), queue)
    assert task.status == "done"
    assert not Transfer.objects.exists(), "everything is there"


def test_rest_tells_how_far_the_datasets_of_a_task_are(queue: ComputingQueue) -> None:
    task = running(parameters("t", nEvents=10, destination="FAR_DISK", **PRODUCTION))
    run_jobs(queue)
    bring(file__dataset__name="t.log")
    ada = person("ada", ("demo", "submitter"))
    answer = ada.get(f"tasks/{task.id}/places/")
    assert answer.status_code == 200, answer.content
    told = {(row["dataset_name"], row["storage"], row["role"]): row for row in answer.json()}
    assert set(told) == {(name, *at) for name in ("t.EVT", "t.log") for at in (
        ("BETA_DISK", "nucleus"), ("FAR_DISK", "destination")
    )}  # fmt: skip
    log, out = told["t.log", "BETA_DISK", "nucleus"], told["t.EVT", "BETA_DISK", "nucleus"]
    assert (log["files"], log["there"], log["on_the_way"], log["complete"]) == (1, 1, 0, True)
    assert (out["files"], out["there"], out["on_the_way"], out["complete"]) == (1, 0, 1, False)
    assert person("eve", ("other", "submitter")).get(f"tasks/{task.id}/places/").status_code == 404
    shown = ada.get(f"tasks/{task.id}/datasets/").json()["results"]
    assert {(d["collected_at"], d["destination"]) for d in shown if d["type"] == "output"} == {("BETA_DISK", "FAR_DISK")}
