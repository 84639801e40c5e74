"""Input that is staged from tape before jobs are made of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from broker_site.foundation.access.principal import Principal
from broker_site.foundation.kernel.clock import now
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import Job, Site, StorageEndpoint, Transfer, TransferWish
from brokerage.queries.invariants import check
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import reasons
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import ROUND, run_agents, run_jobs
from workqueues.ledger.commands import command, command_task
from workqueues.models import CatalogueFile, File, FileChange, Replica, Task
from workqueues.rules.task.commands import COMMANDS

pytestmark = pytest.mark.django_db


def on_tape(**more: bool | str) -> Task:
    """A task of two jobs of one file each: one is on disk at ALPHA, the other on tape there only."""
    grid("ALPHA")
    StorageEndpoint.objects.create(name="ALPHA_TAPE", site=Site.objects.get(), is_tape=True)
    catalogue_dataset("in.data", 2, storage="ALPHA_TAPE")
    Replica.objects.create(file=CatalogueFile.objects.order_by("id").first(), storage="ALPHA_DISK")  # type: ignore[misc]
    return submitted(reading("t", "in.data", nFilesPerJob=1, **{"prodSourceLabel": "managed", **more}))


def held() -> list[str]:
    return list(File.objects.filter(type="input").order_by("id").values_list("held", flat=True))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["inputPreStaging", "toStaging", "panda_data_carousel"])
def test_jobs_are_made_of_files_as_disks_have_them(name: str) -> None:
    task = on_tape(**{name: True})
    run_agents(3, ROUND)
    assert held() == ["", "staged from tape before it is used: on its way to ALPHA_DISK"]
    assert "1 input file is held back: staged from tape before it is used: on its way to ALPHA_DISK." in [
        reason.message for reason in reasons(task_status(Task.objects.get(id=task.id)))
    ]
    (transfer,) = Transfer.objects.all()
    assert (transfer.source, transfer.destination, transfer.activity, transfer.tape) == (
        "ALPHA_TAPE",
        "ALPHA_DISK",
        "Staging",
        True,
    )
    assert set(TransferWish.objects.values_list("role", "job_id", "owner")) == {("stage", None, "ada")}
    queue = Job.objects.get().placed_at
    assert run_jobs(queue) == 1
    finish([TransferMove(transfer.id)], "mover")
    for _ in range(3):
        run_agents(names=ROUND)
        run_jobs(queue)
    task.refresh_from_db()
    assert (task.status, held()) == ("done", ["", ""])
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


@pytest.mark.parametrize("other", ["running", "ended", "none"])
def test_what_was_staged_goes_when_its_task_has_ended_unless_another_needs_it(other: str) -> None:
    task = on_tape(inputPreStaging=True, remove_rule_when_done=True)
    run_agents(3, ROUND)
    transfer, queue = Transfer.objects.get(), Job.objects.get().placed_at
    if other != "none":
        second = submitted(parameters("other", nEvents=10))
        TransferWish.objects.create(transfer=transfer, role="stage", task_id=second.id, dataset_id=0, vo="demo")
        if other == "ended":
            command(second.id, "kill", "user:ada", "")
    run_jobs(queue)
    finish([TransferMove(transfer.id)], "mover")
    staged = Replica.objects.get(storage="ALPHA_DISK", kind="cache")
    assert staged.keep_until is not None and staged.keep_until > now()
    for _ in range(3):
        run_agents(names=ROUND)
        run_jobs(queue)
    task.refresh_from_db()
    staged.refresh_from_db()
    assert task.status == "done"
    assert (staged.keep_until <= now()) == (other != "running")


def test_a_file_that_did_not_come_is_asked_for_again_later() -> None:
    on_tape(inputPreStaging=True)
    run_agents(2, ROUND)
    end_unmet([TransferMove(Transfer.objects.get().id, "no drive is free", reason="expired")], "failed", "mover")
    run_agents(2, ROUND)
    assert held()[1] == "staged from tape before it is used: not brought to ALPHA_DISK (expired), asked for again later"
    assert Transfer.objects.count() == 1
    Transfer.objects.update(ended_at=F("ended_at") - timedelta(hours=2))
    run_agents(1, ("stage",))
    assert Transfer.objects.filter(ended_at=None).count() == 1
    assert held()[1].endswith("on its way to ALPHA_DISK")


def test_a_task_that_is_killed_wants_nothing_staged_any_more() -> None:
    task = on_tape(inputPreStaging=True)
    run_agents(2, ROUND)
    command(task.id, "kill", "user:ada", "")
    run_agents(2, ROUND)
    task.refresh_from_db()
    assert (task.status, TransferWish.objects.filter(closed_at=None).count()) == ("aborted", 0)


@pytest.mark.parametrize("name", ["retry", "incexec", "alive"])
def test_who_runs_a_task_again_need_not_wait_for_tape(name: str) -> None:
    task = on_tape(inputPreStaging=True, prodSourceLabel="user")
    run_agents(3, ROUND)
    on_its_way = ["", "staged from tape before it is used: on its way to ALPHA_DISK"]
    assert held() == on_its_way
    row = COMMANDS[name if name != "alive" else "retry"]
    ada = Principal("user", "ada", roles={"demo": frozenset({"submitter"})})
    if name != "alive":
        command(task.id, "kill", "user:ada", "")
        run_agents(names=ROUND)
        assert held() == on_its_way
    told = command_task(ada, Task.objects.get(id=task.id), row, "now", {"staged": True}).told
    assert ("1 waits no longer to be staged from tape." in told) == (name == "alive")
    run_agents(3, ("command", "refine", "feed", "stage"))
    assert held() == ["", ""]
    assert FileChange.objects.filter(why="run again without being staged").count() == 1
