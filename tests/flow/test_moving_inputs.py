"""Input that is not where jobs run: it is asked for, jobs wait for it, and start or end with what becomes of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F

from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import ComputingQueue, Job, JobChange, JobSpec, StorageEndpoint, Transfer, TransferWish
from brokerage.queries.invariants import check
from brokerage.queries.job_document import job_document
from brokerage.rules.transfers.wishes import ANALYSIS_INPUT, PRODUCTION_INPUT
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import end, let_confirm, run_agents, run_jobs, take, try_take
from tests.moving import copy_at, marked_grid, move_all, stored_files
from workqueues.ledger.commands import command
from workqueues.models import File, Replica, Task

pytestmark = pytest.mark.django_db

PRODUCTION = {"prodSourceLabel": "managed"}


def away(**more: Any) -> tuple[Task, ComputingQueue]:
    """A production task of two jobs whose input is at ALPHA, while only BETA takes jobs."""
    alpha, beta = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(id=alpha.id).update(status="offline")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data", **{**PRODUCTION, **more}))
    run_agents()
    return task, beta


def jobs() -> list[tuple[str, str]]:
    return list(Job.objects.order_by("id").values_list("status", "sub_status"))


def under_way(**where: Any) -> list[Transfer]:
    return list(Transfer.objects.filter(ended_at=None, **where).order_by("id"))


def bring(*transfers: Transfer) -> None:
    """The files stand where they were wished."""
    moves = [TransferMove(transfer.id) for transfer in transfers]
    assert sorted(finish(moves, "mover")) == sorted(transfer.id for transfer in transfers)


def open_wishes() -> int:
    return TransferWish.objects.filter(closed_at=None).count()


def is_consistent() -> bool:
    return [(f.invariant.name, f.examples) for f in check() if f.violations] == []


@pytest.mark.django_db(transaction=True)
def test_jobs_wait_for_input_that_is_elsewhere_and_start_when_the_last_file_has_come() -> None:
    task, beta = away()
    assert jobs() == [("assigned", "")] * 2
    assert try_take(beta) is None, "no pilot gets a job whose input is not there"
    first, second, *others = under_way()
    assert [(t.source, t.destination, t.activity) for t in (first, *others)] == [
        ("ALPHA_DISK", "BETA_DISK", PRODUCTION_INPUT)
    ] * 3
    assert JobChange.objects.filter(new="assigned").values_list("why", flat=True)[0] == (
        "made for BETA, where 2 of its input files must come"
    )
    bring(first)
    assert jobs() == [("assigned", "")] * 2
    bring(second)
    assert sorted(jobs()) == [("activated", ""), ("assigned", "")]
    assert run_jobs(beta) == 1
    bring(*others)
    for _ in range(3):
        run_jobs(beta)
        run_agents()
    task.refresh_from_db()
    assert (task.status, open_wishes()) == ("done", 0)
    assert set(Replica.objects.filter(storage="BETA_DISK", file__dataset__name="in.data").values_list("kind", flat=True)) == {
        "cache"
    }
    assert is_consistent()


def test_only_files_that_are_not_there_are_asked_for() -> None:
    alpha, _ = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(id=alpha.id).update(status="offline")
    for file in catalogue_dataset("in.data", 4).files.filter(lfn__lte="in.data.000002"):
        Replica.objects.create(file=file, storage="BETA_DISK")
    submitted(reading("t", "in.data", **PRODUCTION))
    run_agents()
    assert sorted(status for status, _ in jobs()) == ["activated", "assigned"]
    (transfer,) = under_way()
    assert transfer.file.lfn == "in.data.000003"


def test_a_file_that_all_jobs_read_is_brought_once() -> None:
    grid("ALPHA", "BETA")
    catalogue_dataset("in.data", 4, storage="BETA_DISK")
    catalogue_dataset("conditions", 1)
    item = {
        "type": "template",
        "param_type": "input",
        "dataset": "conditions",
        "value": "--db ${DBR}",
        "attributes": "repeat,nosplit",
    }
    params = reading("t", "in.data", site="BETA", **PRODUCTION)
    params["jobParameters"].append(item)
    submitted(params)
    run_agents()
    assert jobs() == [("assigned", "")] * 2
    (transfer,) = under_way()
    assert TransferWish.objects.filter(transfer=transfer, closed_at=None).count() == 2
    bring(transfer)
    assert jobs() == [("activated", "")] * 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("reason", "end_of_job"),
    [
        ("no_source", "input_missing"), ("source_missing", "input_missing"), ("source_corrupt", "input_missing"),
        ("quota", "transfer_failed"), ("src_down", "transfer_failed"),
    ],
)  # fmt: skip
def test_a_job_whose_file_cannot_be_brought_is_closed_and_its_files_go_back(reason: str, end_of_job: str) -> None:
    task, _ = away()
    assert end_unmet([TransferMove(under_way()[0].id, "it is so", reason=reason)], "failed", "mover")
    assert sorted(jobs()) == [("assigned", ""), ("closed", end_of_job)]
    closed = Job.objects.get(status="closed")
    assert "in.data.000000 was not brought to BETA_DISK" in closed.result.error_message
    assert open_wishes() == 2
    files = File.objects.filter(task_id=task.id, type="input").order_by("id")
    assert list(files.values_list("status", "attempt_nr", "failed_attempt"))[:2] == [("ready", 1, 0)] * 2
    assert is_consistent()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("gone", [True, False])
def test_input_that_its_only_storage_does_not_have_is_looked_for_and_lost(tmp_path: Path, gone: bool) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    set_override("transfers", "MAX_ATTEMPTS", 1, who="test", why="no rest between attempts")
    first, _ = stored_files(tmp_path, [b"first", b"second"], "ALPHA", dataset="in.data")
    task = submitted(reading("t", "in.data", nFilesPerJob=1, site="BETA", **PRODUCTION))
    run_agents()
    kept = copy_at(tmp_path, "ALPHA", first)
    away = kept.rename(tmp_path / "away")
    move_all()
    assert sorted(jobs()) == [("activated", ""), ("closed", "input_missing")]
    file = File.objects.get(task_id=task.id, lfn=first.lfn)
    assert (file.status, file.held) == ("ready", "reported missing at ALPHA_DISK")
    if not gone:
        away.rename(kept)
    run_agents(1, ("feed",))
    let_confirm()
    run_agents(1, ("feed",))
    file.refresh_from_db()
    assert (file.status, file.held) == ("lost" if gone else "ready", "")


@pytest.mark.parametrize("how", ["kill", "time", "queue"])
def test_jobs_that_end_while_they_wait_want_nothing_any_more(how: str) -> None:
    task, beta = away()
    assert open_wishes() == 4
    if how == "kill":
        command(task.id, "kill", "user:ada", "")
    elif how == "time":
        Job.objects.update(status_since=F("status_since") - timedelta(hours=13))
    else:
        ComputingQueue.objects.filter(id=beta.id).update(status="offline")
        Job.objects.update(status_since=F("status_since") - timedelta(hours=1))
        ComputingQueue.objects.filter(id=beta.id).update(status_since=F("status_since") - timedelta(hours=1))
    run_agents(1, ("command", "reap"))
    assert {status for status, _ in jobs()} == {"cancelled" if how == "kill" else "closed"}
    assert open_wishes() == 0
    assert len(under_way()) == 4, "whoever moves files gives up those that nobody wants"


def test_a_transfer_that_ends_while_its_last_wish_goes_leaves_a_copy_and_no_job() -> None:
    task, _ = away()
    transfers = under_way()
    command(task.id, "kill", "user:ada", "")
    run_agents()
    bring(*transfers)
    assert {status for status, _ in jobs()} == {"cancelled"}
    assert Replica.objects.filter(storage="BETA_DISK").count() == 4
    task.refresh_from_db()
    assert task.status == "aborted"


def test_urgent_tasks_are_brought_their_input_first() -> None:
    away(processingType="urgent")
    assert {(t.activity, t.express) for t in under_way()} == {("Express", True)}


def test_a_queue_that_no_storage_of_can_take_input_gets_no_job() -> None:
    alpha, _ = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(id=alpha.id).update(status="offline")
    StorageEndpoint.objects.filter(name="BETA_DISK").update(status={"write_wan": "OFF"})
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", **PRODUCTION))
    run_agents()
    task.refresh_from_db()
    assert (jobs(), under_way()) == ([], [])
    assert task.error_dialog


def test_jobs_of_users_go_to_their_input_until_every_queue_with_it_closed_some() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    catalogue_dataset("in.data", 2)
    ComputingQueue.objects.filter(id=alpha.id).update(status="offline")
    task = submitted(reading("t", "in.data", taskPriority=900))
    run_agents()
    task.refresh_from_db()
    assert (jobs(), under_way()) == ([], [])
    assert "ALPHA has it, and jobs of users go to their input while no job of the task was closed there" in task.error_dialog
    ComputingQueue.objects.filter(id=alpha.id).update(status="online")
    Task.objects.update(next_look_at=None)
    run_agents()
    (job,) = Job.objects.all()
    assert (job.status, job.computing_queue_id) == ("activated", alpha.id)
    Job.objects.update(status_since=F("status_since") - timedelta(days=3))
    run_agents(1, ("reap",))
    Task.objects.update(next_look_at=None)
    run_agents()
    job = Job.objects.latest("id")
    assert (job.status, job.computing_queue_id) == ("assigned", beta.id)
    assert {t.activity for t in under_way()} == {ANALYSIS_INPUT}


def test_input_is_read_over_the_network_where_task_and_queue_allow_it() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(id=alpha.id).update(status="offline")
    direct = {"releases": ["ANY"], "direct_access_lan": True, "direct_access_wan": True}
    ComputingQueue.objects.filter(id=beta.id).update(attributes=direct)
    catalogue_dataset("in.data", 2)
    submitted(reading("t", "in.data", allowInputWAN=True, **PRODUCTION))
    run_agents()
    assert (jobs(), under_way()) == ([("activated", "")], [])
    assert JobSpec.objects.get().reads_wan
    assert end(take(beta)) == "finished"


def test_input_that_every_queue_has_is_not_brought() -> None:
    grid("ALPHA", "BETA")
    catalogue_dataset("in.data", 4, storage="BETA_DISK")
    catalogue_dataset("releases", 1)
    item = {
        "type": "template",
        "param_type": "input",
        "dataset": "releases",
        "value": "--rel ${DBR}",
        "attributes": "repeat,nosplit,cvmfs",
    }
    params = reading("t", "in.data", site="BETA", **PRODUCTION)
    params["jobParameters"].append(item)
    submitted(params)
    run_agents()
    assert (jobs(), under_way()) == ([("activated", "")] * 2, [])
    document = job_document(Job.objects.order_by("id")[0].id)
    assert {entry["dataset"] for entry in document["inputs"]} == {"in.data"}, "its pilot fetches what storage has"
    assert "--rel releases.000000" in document["parameters"]


def test_input_that_only_tape_has_is_staged() -> None:
    grid("ALPHA", "BETA")
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(is_tape=True)
    catalogue_dataset("in.data", 2)
    submitted(reading("t", "in.data", site="BETA", **PRODUCTION))
    run_agents()
    assert jobs() == [("assigned", "")]
    assert {(t.activity, t.tape) for t in under_way()} == {("Staging", True)}
    assert set(TransferWish.objects.values_list("role", "owner")) == {("stage", "ada")}
