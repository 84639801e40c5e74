"""How much input is on the way for one user, and files that came without word."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from brokerage.agents import stage
from brokerage.ledger.transfers.ends import finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import ComputingQueue, Job, QueueStorage, StorageEndpoint, Transfer, TransferWish
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import headline
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import ROUND, run_agents, take
from workqueues.models import CatalogueFile, Replica, Task, TaskThrottle

pytestmark = pytest.mark.django_db

MANAGED: dict[str, Any] = {"prodSourceLabel": "managed"}


@pytest.fixture(autouse=True)
def _look_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "LOOK_UPS", stage.LookUps())


def away(name: str = "t", size_gb: int = 600, tape: bool = False, **more: Any) -> Task:
    """A task of two jobs of one large file each, which is at ALPHA while only BETA takes jobs."""
    if not ComputingQueue.objects.exists():
        alpha, _ = grid("ALPHA", "BETA")
        ComputingQueue.objects.filter(id=alpha.id).update(status="offline")
        ComputingQueue.objects.update(maxwdir=0)
        StorageEndpoint.objects.filter(name="ALPHA_DISK").update(is_tape=tape)
    catalogue_dataset(f"{name}.data", 2, size=size_gb * 10**9)
    return submitted(reading(name, f"{name}.data", nFilesPerJob=1, **{**MANAGED, **more}))


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


@pytest.mark.parametrize(
    ("tape", "said"),
    [
        (False, "no new jobs are made while 1,200 GB of input are brought for ada, more than the limit of 1024 GB"),
        (True, "no new jobs are made while 1,200 GB of input are staged from tape for ada, more than the limit of 1024 GB"),
    ],
)
def test_tasks_of_a_user_for_whom_too_much_is_on_the_way_are_throttled_until_it_is_less(tape: bool, said: str) -> None:
    task, other = away(tape=tape), away("u", 1, userName="bob")
    run_agents(3, ROUND)
    assert (status(task), status(other)) == ("throttled", "running")
    assert headline(task_status(task)) == f"Throttled: {said}"
    assert Job.objects.filter(task_id=task.id, status="assigned").count() == 2, "jobs that are made stay"
    first, _ = Transfer.objects.filter(wishes__task_id=task.id).order_by("id").distinct()
    finish([TransferMove(first.id)], "mover")
    run_agents(1, ("stage",))
    assert (status(task), task.error_dialog, TaskThrottle.objects.count()) == ("running", "", 0)
    assert Job.objects.filter(task_id=task.id, status="activated").count() == 1


def test_a_throttled_task_goes_on_after_a_while_where_nobody_looks_any_more() -> None:
    task = away()
    run_agents(3, ROUND)
    assert status(task) == "throttled"
    run_agents(1, ("wake",))
    assert status(task) == "throttled"
    TaskThrottle.objects.update(until=F("until") - timedelta(hours=3))
    Task.objects.update(next_look_at=None)
    run_agents(1, ("wake",))
    assert status(task) == "running"


def test_a_task_that_is_throttled_for_two_causes_goes_on_when_none_holds() -> None:
    task = away()
    run_agents(3, ROUND)
    TaskThrottle.objects.create(task=task, cause="operator", why="an operator wishes so")
    TransferWish.objects.update(closed_at=F("created_at"))
    run_agents(1, ("stage",))
    assert (status(task), task.error_dialog) == ("throttled", "an operator wishes so")
    Task.objects.update(next_look_at=None)
    run_agents(1, ("wake",))
    assert status(task) == "throttled"
    TaskThrottle.objects.all().delete()
    Task.objects.update(next_look_at=None)
    run_agents(1, ("wake",))
    assert status(task) == "running"


def test_no_input_moves_for_a_user_who_is_over_his_limit_even_where_his_task_may_run_anywhere() -> None:
    away()
    run_agents(3, ROUND)
    catalogue_dataset("small", 1)
    task = submitted(reading("s", "small", taskPriority=3000))
    run_agents(names=ROUND)
    status(task)
    assert Job.objects.filter(task_id=task.id).count() == 0
    assert "1,200 GB of input are brought for ada, more than the limit of 1024 GB" in task.error_dialog


@pytest.mark.parametrize(("priority", "state"), [(900, "activated"), (700, "assigned")])
def test_files_that_came_without_word_are_found_for_jobs_of_high_priority(priority: int, state: str) -> None:
    away(size_gb=1, taskPriority=priority)
    run_agents(1, ROUND)
    assert set(Job.objects.values_list("status", flat=True)) == {"assigned"}
    for file in CatalogueFile.objects.all():
        Replica.objects.create(file=file, storage="BETA_DISK")
    run_agents(1, ("stage",))
    assert set(Job.objects.values_list("status", flat=True)) == {"assigned"}, "not before an hour is over"
    Transfer.objects.update(created_at=F("created_at") - timedelta(hours=2))
    stage.LOOK_UPS = stage.LookUps()
    run_agents(1, ("stage",))
    assert set(Job.objects.values_list("status", flat=True)) == {state}
    if state == "activated":
        assert set(Transfer.objects.values_list("status", "reason", "message")) == {("done", "seen", "found by a look-up")}


def test_a_file_at_another_disk_that_the_queue_reads_is_there() -> None:
    away(size_gb=1, taskPriority=900)
    run_agents(1, ROUND)
    beta = ComputingQueue.objects.get(name="BETA")
    other = StorageEndpoint.objects.create(name="BETA_SCRATCH", site=beta.site)
    QueueStorage.objects.create(queue=beta, storage=other, access="read_lan", position=2)
    for file in CatalogueFile.objects.all():
        Replica.objects.create(file=file, storage="BETA_SCRATCH")
    stage.LOOK_UPS = stage.LookUps()
    Transfer.objects.update(created_at=F("created_at") - timedelta(hours=2))
    run_agents(1, ("stage",))
    assert set(Job.objects.values_list("status", flat=True)) == {"activated"}
    take(beta)
    assert not TransferWish.objects.filter(closed_at=None).exists()


@pytest.mark.parametrize(("attributes", "ends"), [("", True), ("manytime", False)])
def test_copies_are_kept_a_while_after_their_use_and_those_for_many_tasks_without_end(attributes: str, ends: bool) -> None:
    params = reading("t", "t.data", nFilesPerJob=1, **MANAGED)
    params["jobParameters"][0]["attributes"] = attributes
    alpha, beta = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(id=alpha.id).update(status="offline")
    catalogue_dataset("t.data", 1)
    submitted(params)
    run_agents(1, ROUND)
    finish([TransferMove(t.id) for t in Transfer.objects.all()], "mover")
    run_agents(1, ("stage",))
    stage.LOOK_UPS = stage.LookUps()
    run_agents(1, ("stage",))
    copy = Replica.objects.get(storage="BETA_DISK")
    assert (copy.kind, copy.keep_until is not None) == ("cache", ends)
    before = copy.last_used
    take(beta)
    stage.LOOK_UPS = stage.LookUps()
    run_agents(1, ("stage",))
    copy.refresh_from_db()
    assert before is not None
    assert copy.last_used is not None
    assert copy.last_used >= before
    assert not ends or copy.keep_until == copy.last_used + timedelta(days=7)
    assert Replica.objects.get(storage="ALPHA_DISK").keep_until is None
