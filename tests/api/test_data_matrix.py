"""The matrix of authorisation for data: what is done to the tasks, datasets and files of a user, by whom, and what comes of it.

`test_matrix.py` asks every route who may use it at all; here each caller may, and the thing asked for is somebody's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction

from brokerage.models import Job
from tests.api.people import Person, person
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import run_agents
from workqueues.models import CatalogueDataset, Dataset, File, ReadGrant, Task

pytestmark = pytest.mark.django_db

CALLERS: dict[str, list[tuple[str, str]]] = {
    "owner": [("demo", "submitter")],
    "colleague": [("demo", "submitter")],
    "producer": [("demo", "submitter"), ("demo", "production")],
    "operator": [("demo", "submitter"), ("demo", "operator")],
    "stranger": [("other", role) for role in ("submitter", "production", "operator", "auditor")],
    "guest": [("guests", role) for role in ("submitter", "operator")],
}
"""Caller -> roles; all but the stranger and the guest are of the VO of the data. A grant lets the VO of the guest read `in.*`."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A running task of the owner. In the catalogue are `in.data` and `old.data` of the VO, and `mine.data` of the owner.

    `grant`: of an operator, `own_grant`: of the owner on what is his, for the VO of the guest.
    """

    task: Task
    input: Dataset
    file: File
    job: Job
    grant: ReadGrant
    own_grant: ReadGrant


@pytest.fixture
def scene(db: None) -> Scene:
    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    catalogue_dataset("old.data", 1)
    catalogue_dataset("mine.data", 1, owner="owner")
    task = submitted(reading("held", "in.data", userName="owner"))
    run_agents()
    dataset = Dataset.objects.get(task=task, type="input")
    grants = [
        ReadGrant.objects.create(vo="demo", pattern="in.*", owner=owner, grantee_kind="vo", grantee="guests", made_by="test")
        for owner in ("", "owner")
    ]
    file, job = File.objects.filter(dataset=dataset)[0], Job.objects.filter(task_id=task.id)[0]
    return Scene(task, dataset, file, job, *grants)


def people() -> dict[str, Person]:
    return {name: person(name, *roles) for name, roles in CALLERS.items()}


def vo_of(caller: Person) -> str:
    return CALLERS[caller.name][0][0]


def writing(name: str, dataset: str, **more: Any) -> dict[str, Any]:
    """A task that reads `in.data` and writes to this dataset."""
    params = reading(name, "in.data", userName=None, **more)
    params["jobParameters"][1]["dataset"] = dataset
    return params


GRANT = {"vo": "demo", "pattern": "mine.*", "grantee_kind": "vo", "grantee": "other"}
Act = Callable[[Person, Scene], Any]
READERS = {"owner": 200, "colleague": 200, "producer": 200, "operator": 200, "stranger": 404, "guest": 404}
ACTS: dict[str, tuple[Act, dict[str, int]]] = {
    "read the task": (lambda who, at: who.get(f"tasks/{at.task.id}/"), READERS),
    "read its history": (lambda who, at: who.get(f"tasks/{at.task.id}/history/"), READERS),
    "list its datasets": (lambda who, at: who.get(f"tasks/{at.task.id}/datasets/"), READERS),
    "list its files": (lambda who, at: who.get(f"tasks/{at.task.id}/files/"), READERS),
    "list its jobs": (lambda who, at: who.get(f"tasks/{at.task.id}/jobs/"), READERS),
    "read a dataset of it": (lambda who, at: who.get(f"datasets/{at.input.id}/"), READERS),
    "read a file of it": (lambda who, at: who.get(f"files/{at.file.id}/"), READERS),
    "read a job of it": (lambda who, at: who.get(f"jobs/{at.job.id}/"), READERS),
    "kill it": (
        lambda who, at: who.post(f"tasks/{at.task.id}/kill/"),
        {"owner": 202, "colleague": 403, "producer": 403, "operator": 202, "stranger": 404, "guest": 404},
    ),
    "kill it, submitted by the producer": (
        lambda who, at: (
            Task.objects.filter(id=at.task.id).update(submitted_by="producer") and who.post(f"tasks/{at.task.id}/kill/")
        ),
        {"owner": 202, "colleague": 403, "producer": 202, "operator": 202, "stranger": 404, "guest": 404},
    ),
    "read the VO's dataset in a task": (
        lambda who, at: who.submit(reading("t", "in.data", vo=vo_of(who), userName=None)),
        {"owner": 201, "colleague": 201, "producer": 201, "operator": 201, "stranger": 422, "guest": 422},
    ),
    "read it by its scope": (
        lambda who, at: who.submit(reading("t", "demo:in.data", vo=vo_of(who), userName=None)),
        {"owner": 201, "colleague": 201, "producer": 201, "operator": 201, "stranger": 422, "guest": 201},
    ),
    "write to the owner's dataset": (
        lambda who, at: who.submit(writing("t", "mine.data", vo="demo")),
        {"owner": 201, "colleague": 422, "producer": 201, "operator": 422, "stranger": 403, "guest": 403},
    ),
    "write to the output of the task": (
        lambda who, at: who.submit(writing("t", "held.OUT", vo="demo")),
        {"owner": 422, "colleague": 422, "producer": 422, "operator": 422, "stranger": 403, "guest": 403},
    ),
    "write to a dataset that has no owner": (
        lambda who, at: who.submit(writing("t", "old.data", vo="demo")),
        {"owner": 422, "colleague": 422, "producer": 201, "operator": 422, "stranger": 403, "guest": 403},
    ),
    "read by its scope what the grant does not open": (
        lambda who, at: who.submit(reading("t", "demo:old.data", vo=vo_of(who), userName=None)),
        {"owner": 201, "colleague": 201, "producer": 201, "operator": 201, "stranger": 422, "guest": 422},
    ),
    "read the grant": (lambda who, at: who.get(f"read-grants/{at.grant.id}/"), READERS | {"guest": 200}),
    "give a grant": (
        lambda who, at: who.post("read-grants/", GRANT),
        {"owner": 201, "colleague": 201, "producer": 201, "operator": 201, "stranger": 403, "guest": 403},
    ),
    "withdraw the operator's grant": (
        lambda who, at: who.delete(f"read-grants/{at.grant.id}/"),
        {"owner": 403, "colleague": 403, "producer": 403, "operator": 204, "stranger": 404, "guest": 403},
    ),
    "withdraw the owner's grant": (
        lambda who, at: who.delete(f"read-grants/{at.own_grant.id}/"),
        {"owner": 204, "colleague": 403, "producer": 403, "operator": 204, "stranger": 404, "guest": 403},
    ),
    "be its child": (
        lambda who, at: who.submit(reading("t", "held.OUT", vo=vo_of(who), userName=None, parentTaskName="held")),
        {"owner": 201, "colleague": 422, "producer": 422, "operator": 422, "stranger": 422, "guest": 422},
    ),
    "submit for the owner": (
        lambda who, at: who.submit(reading("t", "in.data", userName="owner")),
        {"owner": 201, "colleague": 403, "producer": 201, "operator": 403, "stranger": 403, "guest": 403},
    ),
    "submit for the owner in the own VO": (
        lambda who, at: who.submit(reading("t", "in.data", userName="owner", vo=vo_of(who), waitInput=True)),
        {"owner": 201, "colleague": 403, "producer": 201, "operator": 403, "stranger": 422, "guest": 403},
    ),
}
"""What is tried, and the status that each caller must be answered with."""


def test_data_of_a_user_are_for_whom_the_matrix_says(scene: Scene) -> None:
    callers, wrong = people(), []
    for act, (doing, expected) in ACTS.items():
        assert set(expected) == set(callers)
        for name, caller in callers.items():
            with transaction.atomic():  # what it changes is undone
                status = doing(caller, scene).status_code
                transaction.set_rollback(True)
            if status != expected[name]:
                wrong.append(f"{act} by {name}: {status}, expected {expected[name]}")
    assert not wrong, "\n".join(wrong)


def test_lists_have_nothing_of_another_vo(scene: Scene) -> None:
    callers = people()
    for path in ("tasks/", "datasets/", "jobs/"):
        assert callers["colleague"].get(path).json()["results"]
        for other in ("stranger", "guest"):
            assert callers[other].get(path).json()["results"] == []


def test_a_dataset_of_another_vo_is_told_as_one_that_does_not_exist(scene: Scene) -> None:
    """Word for word: whoever asks learns nothing of it."""
    stranger = people()["stranger"]
    there, absent = (stranger.submit(reading("t", name, vo="other", userName=None)).json() for name in ("in.data", "no.data"))
    for answer in (there, absent):
        del answer["trace_id"]
    assert str(there).replace("in.data", "no.data") == str(absent)


def test_each_vo_has_a_dataset_of_a_name_of_its_own(scene: Scene) -> None:
    """Its name, state and files are nobody else's, whatever they write to theirs."""
    catalogue_dataset("theirs.in", 1, vo="other")
    CatalogueDataset.objects.filter(vo="demo", name="mine.data").update(state="closed")
    params = reading("t", "theirs.in", vo="other", userName=None)
    params["jobParameters"][1]["dataset"] = "mine.data"
    assert people()["stranger"].submit(params).status_code == 201
    run_agents()
    rows = CatalogueDataset.objects.filter(name="mine.data").order_by("vo").values_list("vo", "owner", "state")
    assert list(rows) == [("demo", "owner", "closed"), ("other", "stranger", "open")]
