"""Outputs made elsewhere are brought to the nucleus: the job waits for them, its slot does not, and nobody sees them before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.kernel.clock import now
from brokerage.ledger.settle import LastWord, settle_jobs
from brokerage.ledger.transfers.withdrawal import forget_emptied
from brokerage.models import (
    ComputingQueue,
    Job,
    JobInput,
    JobResult,
    ReplicaChange,
    StorageEndpoint,
    Transfer,
    TransferWish,
)
from brokerage.queries.dataset_places import dataset_places
from brokerage.queries.pilots import outcomes
from brokerage.rules.dispatch.settlement import Report
from tests.api.people import person
from tests.builders import catalogue_dataset, parameters, reading, submitted
from tests.flow.collecting import PRODUCTION, bring, faults, lose, nucleus_grid, running, statuses, visible
from tests.flow.steps import end, good, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import CatalogueFile, Dataset, File, Replica
from workqueues.rules.task.commands import COMMANDS

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> ComputingQueue:
    return nucleus_grid()


def test_a_job_waits_for_its_outputs_while_its_slot_is_free_and_finishes_when_the_last_is_at_the_nucleus(
    queue: ComputingQueue,
) -> None:
    catalogue_dataset("in.data", 2)
    task = running(reading("t", "in.data", **PRODUCTION))
    leased = take(queue)
    assert end(leased) == "transferring"
    job = Job.objects.get()
    assert (job.status, job.lease_holder, job.ended_at) == ("transferring", None, None)
    assert job.result.reported_status == "finished"
    assert set(JobInput.objects.values_list("status", flat=True)) == {"live"}
    wishes = TransferWish.objects.filter(job_id=job.id, closed_at=None)
    assert {(w.role, w.transfer.destination, w.transfer.source) for w in wishes} == {
        ("output", "BETA_DISK", "ALPHA_DISK"), ("log", "BETA_DISK", "ALPHA_DISK")
    }  # fmt: skip
    assert {w.transfer.activity for w in wishes} == {"Production Output"}
    data = Dataset.objects.get(type="input")
    assert (data.n_files_on_hold, data.n_files_used, data.n_files_finished) == (2, 2, 0)
    assert (visible("t.OUT"), visible("t.log")) == (0, 0)
    assert faults() == []

    assert end(leased) == "transferring", "the same report again gets the same answer"
    assert [o["outcome"] for o in outcomes([(job.id, leased.epoch)], "ALPHA")] == ["finished"], "the pilot keeps what it wrote"

    assert bring(file__dataset__name="t.OUT") == 1
    assert statuses() == {"transferring"}
    assert visible("t.OUT") == 0, "not before the job has finished"
    assert bring() == 1
    assert statuses() == {"finished"}
    data.refresh_from_db()
    assert (data.n_files_on_hold, data.n_files_finished) == (0, 2)
    assert (visible("t.OUT"), visible("t.log")) == (1, 1)
    made = File.objects.get(type="output")
    assert (made.status, made.fsize, made.checksum) == ("finished", 10, "0000000a")
    copies = Replica.objects.filter(file__dataset__name="t.OUT")
    assert set(copies.values_list("storage", "kind")) == {("ALPHA_DISK", "cache"), ("BETA_DISK", "origin")}
    assert copies.filter(kind="cache", keep_until__gt=now() + timedelta(days=13)).exists(), (
        "the site that made it keeps it for a while"
    )
    assert end(leased, good(job.id)) == "finished"
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert faults() == []


def test_a_child_reads_what_its_parent_made_only_once_it_is_at_the_nucleus(queue: ComputingQueue) -> None:
    parent = running(parameters("parent", nEvents=20, nEventsPerJob=10, **PRODUCTION))
    child = submitted(reading("child", "parent.EVT", parentTaskName="parent", **PRODUCTION))
    run_jobs(queue)
    run_agents(3)
    for task in (parent, child):
        task.refresh_from_db()
    assert (parent.status, child.status) == ("running", "pending")
    bring()
    run_agents(3)
    parent.refresh_from_db()
    assert parent.status == "done"
    assert Dataset.objects.get(task_id=child.id, type="input").n_files == 2
    assert faults() == []


def test_an_output_that_cannot_be_brought_fails_its_job_and_the_next_try_makes_another(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 2)
    running(reading("t", "in.data", **PRODUCTION))
    leased = take(queue)
    end(leased)
    lost = CatalogueFile.objects.get(dataset__name="t.OUT")
    assert lose(file=lost) == 1
    job = Job.objects.get()
    assert (job.status, job.sub_status) == ("failed", "transfer_failed")
    result = JobResult.objects.get(job_id=job.id)
    assert result.error_code == "TRANSFER_FAILED"
    assert result.error_message.startswith(f"output {lost.lfn} was not brought to BETA_DISK: quota")
    assert not TransferWish.objects.filter(closed_at=None).exists()
    assert set(Replica.objects.filter(file=lost).values_list("storage", "state")) == {("ALPHA_DISK", "deleting")}
    assert ReplicaChange.objects.filter(file_id=lost.id, what="deleting").exists()
    assert Dataset.objects.get(type="input").n_files_on_hold == 0
    assert (visible("t.OUT"), visible("t.log")) == (0, 0)
    assert [o["outcome"] for o in outcomes([(job.id, leased.epoch)], "ALPHA")] == ["gone"]
    assert faults() == []

    run_agents()
    assert run_jobs(queue) == 1
    bring(file__dataset__name="t.OUT")
    bring(file__dataset__name="t.log")
    assert (visible("t.OUT"), visible("t.log")) == (1, 1)
    assert faults() == []


def test_a_copy_that_arrives_after_its_job_was_given_up_is_deleted_and_its_entry_goes(queue: ComputingQueue) -> None:
    running(parameters("t", nEvents=10, **PRODUCTION))
    run_jobs(queue)
    log = CatalogueFile.objects.get(dataset__name="t.log")
    lose(file__dataset__name="t.EVT")
    assert bring(file=log) == 1
    assert set(Replica.objects.filter(file=log).values_list("storage", "state")) == {
        ("ALPHA_DISK", "deleting"), ("BETA_DISK", "deleting")
    }  # fmt: skip
    assert forget_emptied(100) == 0
    Replica.objects.filter(state="deleting").delete()
    TransferWish.objects.all().delete()
    Transfer.objects.all().delete()
    assert forget_emptied(100) == 2
    assert not CatalogueFile.objects.exists()
    assert faults() == []


def test_the_log_alone_holds_no_job_up_when_it_cannot_be_brought(queue: ComputingQueue) -> None:
    task = running(parameters("t", nEvents=10, **PRODUCTION))
    run_jobs(queue)
    assert lose(file__dataset__name="t.log") == 1
    assert statuses() == {"transferring"}
    assert bring() == 1
    assert statuses() == {"finished"}
    assert (visible("t.EVT"), visible("t.log")) == (1, 0)
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert faults() == []


@pytest.mark.parametrize(("priority", "days"), [(500, 5), (900, 3)])
def test_a_job_whose_outputs_travel_too_long_fails_and_its_result_lists_them(
    queue: ComputingQueue, priority: int, days: int
) -> None:
    ComputingQueue.objects.update(attributes={"releases": ["ANY"], "transtimehi": 3, "transtimelo": 5})
    running(parameters("t", nEvents=10, **PRODUCTION))
    Job.objects.update(priority=priority, ready_priority=-priority)
    run_jobs(queue)
    Job.objects.update(status_since=TransactionNow() - timedelta(days=days - 0.1))
    run_agents(1, ("reap",))
    assert statuses() == {"transferring"}
    Job.objects.update(status_since=TransactionNow() - timedelta(days=days + 0.1))
    run_agents(1, ("reap",))
    result = JobResult.objects.get()
    names = ", ".join(sorted(File.objects.filter(out_job_id=result.job_id).values_list("lfn", flat=True)))
    assert statuses() == {"failed"}
    assert (result.error_code, result.error_message) == (
        "TIMEOUT", f"too long in transferring: over {days}d; not brought to BETA_DISK: {names}"
    )  # fmt: skip
    assert faults() == []


@pytest.mark.parametrize(
    ("sub_status", "silent_h", "ended"), [("staging_out", 3, True), ("staging_out", 1, False), ("", 30, False)]
)
def test_a_stage_out_by_means_of_the_site_may_be_silent_for_as_long_as_the_workflow_allows(
    queue: ComputingQueue, sub_status: str, silent_h: float, ended: bool
) -> None:
    running(parameters("t", nEvents=10, **PRODUCTION))
    end(take(queue, lease_s=2 * 3600))
    silent = TransactionNow() - timedelta(hours=silent_h)
    Job.objects.update(sub_status=sub_status, status_since=silent, last_seen=silent)
    run_agents(1, ("reap",))
    assert statuses() == ({"failed"} if ended else {"transferring"})
    assert faults() == []


def test_a_task_that_is_killed_takes_its_travelling_outputs_back(queue: ComputingQueue) -> None:
    task = running(parameters("t", nEvents=20, **PRODUCTION))
    run_jobs(queue)
    command(task.id, "kill", "user:ada")
    run_agents()
    task.refresh_from_db()
    assert (task.status, statuses()) == ("aborted", {"cancelled"})
    assert set(Replica.objects.values_list("state", flat=True)) == {"deleting"}
    assert not TransferWish.objects.filter(closed_at=None).exists()
    assert faults() == []


def test_a_task_that_finishes_softly_lets_its_outputs_arrive(queue: ComputingQueue) -> None:
    task = running(parameters("t", nEvents=20, nEventsPerJob=10, **PRODUCTION))
    end(take(queue))
    command(task.id, "finish", "user:ada", COMMANDS["finish"].kept("", {"soft": True}))
    run_agents()
    assert sorted(Job.objects.values_list("status", flat=True)) == ["cancelled", "transferring"]
    bring()
    run_agents()
    task.refresh_from_db()
    assert task.status == "finished"
    assert faults() == []


@pytest.mark.parametrize("more", [{"stayOutputOnSite": True}, {"intermediateTask": True}, {"prodSourceLabel": "user"}])
def test_outputs_stay_where_they_are_made_where_the_task_says_so_and_of_analysis(
    queue: ComputingQueue, more: dict[str, Any]
) -> None:
    submitted(parameters("t", nEvents=10, **{**PRODUCTION, **more}))
    run_agents(2, ("refine", "feed", "assign"))
    ComputingQueue.objects.exclude(name="ALPHA").update(status="offline")
    run_agents()
    assert run_jobs(queue) == 1
    assert statuses() == {"finished"}
    assert not Transfer.objects.exists()
    assert visible("t.EVT") == 1
    assert faults() == []


def with_token(token: str) -> dict[str, Any]:
    params = parameters("t", nEvents=10, **PRODUCTION)
    params["jobParameters"][2]["token"] = token
    return params


def test_a_token_names_the_storage_of_the_nucleus_and_distributed_outputs_stay(queue: ComputingQueue) -> None:
    StorageEndpoint.objects.create(name="BETA_TAPE", site_id="SITE_BETA", free_gb=90_000, type="DATATAPE", is_tape=True)
    running(with_token("dst:BETA_TAPE"))
    run_jobs(queue)
    assert set(Transfer.objects.values_list("file__dataset__name", "destination")) == {
        ("t.EVT", "BETA_TAPE"), ("t.log", "BETA_DISK")
    }  # fmt: skip


def test_a_token_of_several_places_brings_outputs_to_each_and_the_job_waits_for_all(queue: ComputingQueue) -> None:
    StorageEndpoint.objects.create(name="BETA_TAPE", site_id="SITE_BETA", free_gb=90_000, type="DATATAPE", is_tape=True)
    task = running(with_token("dst:BETA_DISK, dst:BETA_TAPE"))
    out = Dataset.objects.get(type="output")
    assert (out.collected_at, out.also_at) == ("BETA_DISK", ["BETA_TAPE"])
    run_jobs(queue)
    assert set(Transfer.objects.filter(file__dataset__name="t.EVT").values_list("destination", flat=True)) == {
        "BETA_DISK", "BETA_TAPE"
    }  # fmt: skip
    assert [(p.storage, p.role, p.on_the_way) for p in dataset_places([out.id])[out.id]] == [
        ("BETA_DISK", "nucleus", 1), ("BETA_TAPE", "nucleus", 1)
    ]  # fmt: skip
    bring(destination="BETA_DISK")
    assert (statuses(), visible("t.EVT")) == ({"transferring"}, 0)
    bring(destination="BETA_TAPE")
    assert (statuses(), visible("t.EVT")) == ({"finished"}, 1)
    copies = Replica.objects.filter(file__dataset__name="t.EVT").values_list("storage", "kind")
    assert set(copies) == {("ALPHA_DISK", "cache"), ("BETA_DISK", "origin"), ("BETA_TAPE", "origin")}
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert faults() == []


def test_what_cannot_be_brought_to_one_of_several_places_fails_its_job(queue: ComputingQueue) -> None:
    StorageEndpoint.objects.create(name="BETA_TAPE", site_id="SITE_BETA", free_gb=90_000, type="DATATAPE", is_tape=True)
    running(with_token("BETA_DISK,BETA_TAPE"))
    run_jobs(queue)
    bring(destination="BETA_DISK")
    lose(destination="BETA_TAPE")
    assert statuses() == {"failed"}
    assert visible("t.EVT") == 0
    assert faults() == []


def test_of_a_job_with_distributed_outputs_only_the_log_travels_and_all_is_seen_together(queue: ComputingQueue) -> None:
    running(with_token("ddd:any"))
    run_jobs(queue)
    assert list(Transfer.objects.values_list("file__dataset__name", flat=True)) == ["t.log"]
    assert visible("t.EVT") == 0
    bring()
    assert visible("t.EVT") == 1
    assert faults() == []


def test_a_storage_of_the_nucleus_itself_needs_no_transfer(queue: ComputingQueue) -> None:
    StorageEndpoint.objects.create(name="BETA_BIG", site_id="SITE_BETA", free_gb=90_000)
    running(parameters("t", nEvents=10, **PRODUCTION), at="BETA")
    assert set(Dataset.objects.exclude(collected_at="").values_list("collected_at", flat=True)) == {"BETA_BIG"}
    assert run_jobs(ComputingQueue.objects.get(name="BETA")) == 1
    assert statuses() == {"finished"}
    assert not Transfer.objects.exists()
    out = Dataset.objects.get(type="output").id
    assert dataset_places([out])[out][0].complete


def test_urgent_work_travels_before_other_work(queue: ComputingQueue) -> None:
    running(parameters("t", nEvents=10, **PRODUCTION))
    Job.objects.update(priority=1000, ready_priority=-1000)
    run_jobs(queue)
    assert set(Transfer.objects.values_list("activity", "express", "priority")) == {("Express", True, 1000)}


def test_a_place_that_the_grid_lost_collects_nothing(queue: ComputingQueue) -> None:
    running(parameters("t", nEvents=10, **PRODUCTION))
    Dataset.objects.filter(collected_at="BETA_DISK").update(collected_at="NOWHERE")
    run_jobs(queue)
    assert statuses() == {"finished"}
    assert visible("t.EVT") == 1


def test_an_optional_output_that_was_not_made_is_not_waited_for(queue: ComputingQueue) -> None:
    params = parameters("t", nEvents=10, **PRODUCTION)
    params["jobParameters"][2]["allowNoOutput"] = True
    running(params)
    leased = take(queue)
    assert end(leased, Report("finished", [o for o in good(leased.job_id).outputs if ".log." in o.lfn])) == "transferring"
    bring()
    made = File.objects.get(type="output")
    assert (made.status, made.no_output, statuses()) == ("finished", True, {"finished"})
    assert faults() == []


def test_jobs_that_share_a_file_each_hold_it(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 1)
    running(reading("t", "in.data", nEventsPerJob=5, nFilesPerJob=None, **PRODUCTION))
    first, second = take(queue), take(queue)
    end(first)
    end(second)
    data = Dataset.objects.get(type="input")
    assert data.n_files_on_hold == 2
    assert faults() == []
    bring()
    data.refresh_from_db()
    assert (data.n_files_on_hold, data.n_files_finished, data.n_events_used) == (0, 1, 10)
    assert faults() == []


def test_jobs_that_travel_and_jobs_that_stay_are_settled_together(queue: ComputingQueue) -> None:
    running(parameters("t", nEvents=20, nEventsPerJob=10, **PRODUCTION))
    submitted(parameters("u", nEvents=20, nEventsPerJob=10))
    run_agents()
    leases = [take(queue) for _ in range(4)]
    words = [LastWord(leased.job_id, leased.epoch, good(leased.job_id), "pilot") for leased in leases]
    states = settle_jobs(words)
    assert sorted(map(str, states)) == ["finished", "finished", "transferring", "transferring"]
    assert faults() == []
    assert bring() == 4
    assert statuses() == {"finished"}
    assert faults() == []


def test_a_job_whose_outputs_stay_costs_no_statement_more(queue: ComputingQueue) -> None:
    ComputingQueue.objects.exclude(name="ALPHA").update(status="offline")
    submitted(parameters("u", nEvents=20, nEventsPerJob=10))
    run_agents()
    end(take(queue))
    leased = take(queue)
    report = good(leased.job_id)
    with CaptureQueriesContext(connection) as seen:
        assert end(leased, report) == "finished"
    assert not [q for q in seen.captured_queries if "transfer" in q["sql"]]


def test_pages_and_rest_show_a_job_whose_outputs_are_on_their_way(queue: ComputingQueue, client: Client) -> None:
    task = running(parameters("t", nEvents=10, **PRODUCTION))
    run_jobs(queue)
    job = Job.objects.get()
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    page = client.get(f"/jobs/{job.id}/")
    assert page.status_code == 200
    assert "transferring" in page.content.decode()
    told = client.get(f"/tasks/{task.id}/")
    assert told.status_code == 200
    ada = person("ada", ("demo", "operator"))
    reasons = [r["message"] for r in ada.get(f"tasks/{task.id}/waiting/").json()["reasons"]]
    assert reasons == ["1 job has ended and waits until the outputs are where they are collected."]
    answer = ada.get(f"jobs/{job.id}/").json()
    assert (answer["status"], answer["ended_at"], answer["result"]["reported_status"]) == ("transferring", None, "finished")
