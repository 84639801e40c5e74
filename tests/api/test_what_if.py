"""What would be decided now or with changes, and why a queue gets no work, over REST: told, checked, and nothing is written."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import cycle, product
from typing import Any

import pytest

from brokerage.models import ComputingQueue, Decision, StoredSnapshot
from brokerage.queries.what_if import current_request
from brokerage.rules.explain.edits import PARAMETERS, BadEdits, Edit
from brokerage.rules.explain.what_if import what_if
from tests.api.people import Person, faults
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import Task, TaskChange

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(db: None) -> Task:
    """A task of ada that is too large for ALPHA; BETA is offline."""
    grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    task = submitted(parameters(ramCount=9000))
    run_agents()
    task.refresh_from_db()
    assert task.status == "pending"
    return task


def contents() -> list[Any]:
    return [
        *Decision.objects.order_by("id").values_list("id", "n_times", "last_at"),
        *StoredSnapshot.objects.order_by("id").values_list("id"),
        *Task.objects.order_by("id").values(),
        *TaskChange.objects.order_by("id").values_list("id"),
    ]


def test_trying_again_needs_no_body_and_writes_nothing(ada: Person, waiting: Task) -> None:
    before = contents()
    bodies: tuple[dict[str, Any], ...] = ({}, {"edits": {}})
    for body in bodies:
        answer = ada.post(f"tasks/{waiting.id}/what-if/", body)
        assert answer.status_code == 200, answer.content
        assert answer.json()["before"]["outcome"] == "pending"
        assert answer.json()["after"] is None
    assert contents() == before


def test_what_if_tells_before_and_after(ada: Person, waiting: Task) -> None:
    before = contents()
    told = ada.post(f"tasks/{waiting.id}/what-if/", {"edits": {"ramCount": 4000, "queue.BETA.status": "online"}}).json()
    assert {choice["name"] for choice in told["after"]["chosen"]} == {"ALPHA", "BETA"}
    assert [(edit["name"], edit["before"], edit["after"]) for edit in told["edits"]] == [
        ("ramCount", 9000, 4000),
        ("queue.BETA.status", "offline", "online"),
    ]
    assert {change["name"]: (change["before"], change["after"]) for change in told["changed"]} == {
        "ALPHA": ("-lowmemory", "chosen"),
        "BETA": ("-status", "chosen"),
    }
    assert contents() == before


VALUES: tuple[Any, ...] = (None, "", 1, "x", ["x"], {"sw_platform": "el9"})


def test_every_task_parameter_is_changed_or_refused(ada: Person, waiting: Task) -> None:
    """Each over REST with one value, and with every value on the request that REST would decide."""
    for name, value in zip(PARAMETERS, cycle(VALUES), strict=False):
        answer = ada.post(f"tasks/{waiting.id}/what-if/", {"edits": {name: value}})
        assert answer.status_code in (200, 422), (name, answer.content)
    request = current_request(waiting)
    for name, value in product(PARAMETERS, VALUES):
        with suppress(BadEdits):
            document = what_if(request, [Edit(name, value)]).to_document()
            assert json.loads(json.dumps(document, allow_nan=False))["edits"][0]["name"] == name


def test_configuration_that_is_an_object_is_changed_and_told(ada: Person, waiting: Task) -> None:
    told = ada.post(f"tasks/{waiting.id}/what-if/", {"edits": {"config.PROCESSING_GROUPS": {"mc": ["evgen"]}}}).json()
    assert told["edits"][0]["after"] == {"mc": ["evgen"]}


def test_edits_that_cannot_be_made_are_all_told(ada: Person, waiting: Task) -> None:
    edits = {"ramCount": "much", "queue.GAMMA.maxrss": 1, "config.STORAGE_MIN_FREE_SIZE": -1, "scout": 7}
    assert faults(ada.post(f"tasks/{waiting.id}/what-if/", {"edits": edits})) == {
        ("ramCount", "type"),
        ("queue.GAMMA.maxrss", "unknown"),
        ("config.STORAGE_MIN_FREE_SIZE", "range"),
        ("scout", "type"),
    }
    assert faults(ada.post(f"tasks/{waiting.id}/what-if/", {"edits": [1]}))
    assert faults(ada.post(f"tasks/{waiting.id}/what-if/", {"edit": {"ramCount": 1}})) == {("edit", "unknown")}
    assert faults(ada.post(f"tasks/{waiting.id}/what-if/", {"edits": {f"x{i}": 1 for i in range(51)}})) == {("edits", "range")}
    assert ada.post(f"tasks/{waiting.id}/what-if/", b"{").status_code == 400


def test_a_task_that_decides_nothing_is_409_and_one_of_another_vo_404(ada: Person, eve: Person, waiting: Task) -> None:
    assert eve.post(f"tasks/{waiting.id}/what-if/", {}).status_code == 404
    fresh = submitted(parameters("fresh"))
    faults(ada.post(f"tasks/{fresh.id}/what-if/", {}), 409)
    assert ada.post("tasks/99999999/what-if/", {}).status_code == 404


def test_why_a_queue_gets_no_work_counts_the_tasks_of_ones_vos(ada: Person, eve: Person, waiting: Task) -> None:
    told = ada.get("queues/ALPHA/why-empty/").json()
    assert told["verdict"] == "Empty: 0 of 1 latest decisions took it; 1 skipped it by -lowmemory."
    assert [(t["criterion"], t["first"], t["alone"], t["examples"][0][0]) for t in told["tallies"]] == [
        ("-lowmemory", 1, 1, waiting.id)
    ]
    assert eve.get("queues/ALPHA/why-empty/").json()["decisions"] == 0
    assert ada.get("queues/GAMMA/why-empty/").status_code == 404
