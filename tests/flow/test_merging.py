"""Tasks whose outputs are merged by jobs of their own: from pre-merged files to merged ones, and the ways in which that fails."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db.models.functions import Now

from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.expiry import kill_jobs
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove, move_transfers
from brokerage.models import ComputingQueue, Job, JobInput, JobRetryHistory, JobSpec, Transfer
from brokerage.queries.invariants import look
from brokerage.queries.job_document import job_document
from brokerage.queries.pilots import outcomes
from brokerage.rules.dispatch.settlement import JobVersion, Report
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, good, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.ledger.moves import Stale
from workqueues.models import CatalogueFile, Dataset, File, Task
from workqueues.states import OUTPUT_TYPES

pytestmark = pytest.mark.django_db


def broken() -> list[str]:
    return [f"{f.invariant.name}: {f.violations}" for f in look() if f.violations]


def states(task: Task, kind: JobKind = JobKind.NORMAL) -> list[str]:
    return list(Job.objects.filter(task_id=task.id, kind=kind).order_by("id").values_list("status", flat=True))


def test_outputs_are_merged_once_the_jobs_at_the_site_have_ended_and_the_task_is_done_when_they_are() -> None:
    (queue,) = grid("ALPHA", path="/data")
    task = submitted(parameters(mergeOutput=True))
    run_agents()
    for _ in range(3):
        assert end(take(queue)) == "merging"
    run_agents()
    assert states(task) == ["merging"] * 3 + ["activated"]
    assert states(task, JobKind.MERGE) == []
    assert set(File.objects.filter(task=task, type="pseudo_input").values_list("status", flat=True)) == {"running"}
    assert broken() == []
    assert run_jobs(queue) == 1
    run_agents(1)
    assert states(task, JobKind.MERGE) == ["activated"]
    merge = Job.objects.get(task_id=task.id, kind=JobKind.MERGE)
    assert (merge.priority, merge.computing_queue_id) == (5000, queue.id)
    assert set(File.objects.filter(type__startswith="trn_").values_list("status", flat=True)) == {"merging"}
    document = job_document(merge.id)
    inputs = [f"um.t1.EVT.{i:06d}.txt" for i in range(1, 5)]
    assert document["parameters"] == f"{','.join(inputs)}:t1.EVT.000001.txt"
    assert document["transformation"] == "gridbroker-merge"
    assert {i["lfn"] for i in document["inputs"]} == {*inputs, *(f"um.t1.log.{i:06d}.tgz" for i in range(1, 5))}
    assert all(i["sources"] for i in document["inputs"])
    assert [(o["lfn"], o["type"]) for o in document["outputs"]] == [("t1.EVT.000001.txt", "output"), ("t1.log.000001.tgz", "log")]
    assert broken() == []
    assert end(take(queue)) == "finished"
    assert states(task) == ["finished"] * 4
    assert set(File.objects.filter(task=task).values_list("status", flat=True)) == {"finished"}
    assert JobRetryHistory.objects.filter(new_job_id=merge.id, relation_type="merge").count() == 4
    assert broken() == []
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.progress) == ("done", 100), task.error_dialog
    assert CatalogueFile.objects.filter(dataset__name="t1.EVT").count() == 1
    assert Dataset.objects.get(dataset_name="t1.EVT").n_files_finished == 1
    assert broken() == []


def merging_task(n: int = 2, **more: Any) -> Task:
    """A task whose `n` jobs, of ten events each, have ended and wait for the merge job that was made."""
    task = submitted(parameters(mergeOutput=True, nEvents=10 * n, **more))
    run_agents()
    return task


def test_a_merge_job_that_fails_three_times_costs_its_jobs_and_their_inputs_run_again() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task()
    assert run_jobs(queue) == 2
    for n in range(3):
        run_agents(2, ("merge",))
        assert states(task, JobKind.MERGE) == ["failed"] * n + ["activated"]
        assert end(take(queue), BAD) == "failed"
        assert broken() == []
    assert states(task) == ["cancelled", "cancelled"]
    assert set(Job.objects.filter(status="cancelled").values_list("sub_status", flat=True)) == {"merge_failed"}
    reason = Job.objects.filter(status="cancelled").values_list("result__error_code", flat=True)
    assert set(reason) == {"MERGE_FAILED"}
    pairs = list(Job.objects.filter(status="cancelled").values_list("id", "epoch"))
    assert {o["outcome"] for o in outcomes(pairs, "ALPHA")} == {"finished"}, "no pilot takes away what is registered"
    assert set(File.objects.filter(type__startswith="trn_").values_list("status", "attempt_nr")) == {("failed", 3)}
    assert set(File.objects.filter(task=task, type="pseudo_input").values_list("status", "attempt_nr", "failed_attempt")) == {
        ("ready", 1, 0)
    }
    run_agents()
    assert run_jobs(queue) == 2
    run_agents(1)
    assert run_jobs(queue) == 1
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert broken() == []


def test_a_merge_job_whose_pilot_is_silent_is_made_again() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task()
    run_jobs(queue)
    run_agents(1, ("merge",))
    leased = take(queue)
    Job.objects.filter(id=leased.job_id).update(lease_until=TransactionNow() - timedelta(seconds=1))
    run_agents(2, ("reap", "merge"))
    assert states(task, JobKind.MERGE) == ["failed", "activated"]
    assert states(task) == ["merging", "merging"]
    assert broken() == []
    with pytest.raises(Stale):
        end(leased)
    assert run_jobs(queue) == 1
    assert states(task) == ["finished", "finished"]
    assert broken() == []


@pytest.mark.parametrize("taken", [False, True])
def test_a_task_that_is_killed_while_its_outputs_are_merged_ends_aborted(taken: bool) -> None:
    (queue,) = grid("ALPHA")
    task = merging_task()
    run_jobs(queue)
    run_agents(1, ("merge",))
    leased = take(queue) if taken else None
    command(task.id, "kill", "user:ada")
    run_agents()
    task.refresh_from_db()
    assert (task.status, states(task)) == ("aborted", ["cancelled", "cancelled"])
    assert states(task, JobKind.MERGE) == ["cancelled"]
    assert broken() == []
    if leased is not None:
        with pytest.raises(Stale):
            end(leased)


def test_the_end_of_a_job_that_is_being_merged_ends_the_merge_job_and_the_others_are_merged_without_it() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task(3)
    run_jobs(queue)
    run_agents(1, ("merge",))
    leased = take(queue)
    first = Job.objects.filter(task_id=task.id, kind=JobKind.NORMAL).order_by("id")[0]
    kill_jobs([JobVersion(first.id, first.epoch, first.status, task.id)], "user:ada", "not wanted")
    assert states(task) == ["cancelled", "merging", "merging"]
    gone = Job.objects.get(id=leased.job_id)
    assert (gone.status, gone.sub_status) == ("cancelled", "merge_gone")
    assert set(File.objects.filter(type="trn_output").values_list("status", "attempt_nr")) == {("failed", 0), ("prepared", 0)}
    assert broken() == []
    with pytest.raises(Stale):
        end(leased)
    run_agents()
    assert run_jobs(queue) == 1  # the input of the one that was killed; its site waits for it
    run_agents(1)
    assert states(task) == ["cancelled", "merging", "merging", "merging"]
    assert run_jobs(queue) == 1
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert broken() == []


def test_a_merge_job_that_somebody_kills_is_not_tried_again() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task()
    run_jobs(queue)
    run_agents(1, ("merge",))
    merge = Job.objects.get(kind=JobKind.MERGE)
    kill_jobs([JobVersion(merge.id, merge.epoch, merge.status, task.id)], "user:ada", "not wanted")
    assert states(task) == ["cancelled", "cancelled"]
    assert set(File.objects.filter(task=task, type="pseudo_input").values_list("status", flat=True)) == {"ready"}
    assert broken() == []


def test_a_file_that_cannot_be_read_costs_its_own_job_only() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task(3)
    run_jobs(queue)
    lost = File.objects.filter(type="trn_output").order_by("id")[0]
    unread = Report("failed", missing_inputs=[lost.lfn], error_code="INPUT_MISSING", error_message="no source")
    for _ in range(3):
        run_agents(2, ("merge",))
        assert end(take(queue), unread) == "closed"
        assert broken() == []
    assert states(task) == ["cancelled", "merging", "merging"]
    run_agents()
    run_jobs(queue)
    run_agents(1)
    run_jobs(queue)
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert broken() == []


def test_the_limits_of_a_task_say_how_many_files_are_merged_together() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task(5, nFilesPerMergeJob=2)
    run_jobs(queue)
    run_agents(1)
    merges = Job.objects.filter(kind=JobKind.MERGE).order_by("id")
    assert [JobInput.objects.filter(job=job).count() for job in merges] == [4, 4, 2]
    assert run_jobs(queue) == 3
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert CatalogueFile.objects.filter(dataset__name="t1.EVT").count() == 3
    assert broken() == []


def test_sites_are_merged_each_by_itself() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    task = submitted(parameters(mergeOutput=True, nEvents=400))
    run_agents()
    assert set(Job.objects.values_list("computing_queue__name", flat=True)) == {"ALPHA", "BETA"}
    run_jobs(alpha)
    run_agents(1, ("merge",))
    assert set(Job.objects.filter(kind=JobKind.MERGE).values_list("computing_queue__name", flat=True)) == {"ALPHA"}
    assert run_jobs(alpha) >= 1
    assert set(Job.objects.filter(computing_queue=alpha).values_list("status", flat=True)) == {"finished"}
    run_jobs(beta)
    run_agents(1)
    for _ in range(3):
        run_jobs(alpha)
        run_jobs(beta)
        run_agents(1)
    task.refresh_from_db()
    assert task.status == "done"
    assert broken() == []


def test_a_task_that_is_finished_softly_merges_what_its_jobs_have_made() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task(3)
    end(take(queue))
    running = take(queue)
    command(task.id, "finish", "user:ada", "soft finish")
    run_agents()
    assert states(task) == ["merging", "running", "cancelled"]
    end(running)
    run_agents()
    assert states(task, JobKind.MERGE) == ["activated"]
    assert run_jobs(queue) == 1
    run_agents()
    task.refresh_from_db()
    assert (task.status, states(task)) == ("finished", ["finished", "finished", "cancelled"])
    assert broken() == []


def test_a_paused_task_merges_when_it_goes_on() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task()
    run_jobs(queue)
    command(task.id, "pause", "user:ada")
    run_agents()
    assert states(task, JobKind.MERGE) == []
    command(task.id, "resume", "user:ada")
    run_agents()
    assert run_jobs(queue) == 1
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_what_waits_where_no_job_can_run_for_a_day_is_made_again_elsewhere() -> None:
    alpha, _ = grid("ALPHA", "BETA")
    task = submitted(parameters(mergeOutput=True, nEvents=20, includedSite=["ALPHA"]))
    run_agents()
    run_jobs(alpha)
    ComputingQueue.objects.filter(id=alpha.id).update(status="offline", status_since=Now())
    run_agents(2, ("merge",))
    assert (states(task), states(task, JobKind.MERGE)) == (["merging", "merging"], [])
    ComputingQueue.objects.filter(id=alpha.id).update(status_since=TransactionNow() - timedelta(days=2))
    run_agents(1, ("merge",))
    assert states(task) == ["cancelled", "cancelled"]
    assert set(File.objects.filter(task=task, type="pseudo_input").values_list("status", flat=True)) == {"ready"}
    assert broken() == []


def test_a_merge_job_that_waits_where_no_job_can_run_for_a_day_is_given_up_with_its_jobs() -> None:
    alpha, _ = grid("ALPHA", "BETA")
    task = submitted(parameters(mergeOutput=True, nEvents=20, includedSite=["ALPHA"]))
    run_agents()
    run_jobs(alpha)
    run_agents(1, ("merge",))
    ComputingQueue.objects.filter(id=alpha.id).update(status="offline", status_since=TransactionNow() - timedelta(hours=2))
    run_agents(1, ("merge",))
    assert states(task, JobKind.MERGE) == ["activated"]
    ComputingQueue.objects.filter(id=alpha.id).update(status_since=TransactionNow() - timedelta(days=2))
    run_agents(2, ("merge",))
    assert (states(task), states(task, JobKind.MERGE)) == (["cancelled", "cancelled"], ["closed"])
    assert broken() == []


def test_a_block_is_merged_while_other_jobs_of_the_task_live() -> None:
    (queue,) = grid("ALPHA")
    set_override("jobbroker", "MERGE_SCOPE", "block", who="test", why="a task too large to wait")
    task = submitted(parameters(mergeOutput=True, nEvents=40))
    run_agents()
    first, other = take(queue), take(queue)
    JobSpec.objects.filter(job_id=other.job_id).update(decision_id=0)
    end(first)
    run_agents(1, ("merge",))
    assert states(task, JobKind.MERGE) == []  # three of its block are left
    run_jobs(queue)
    run_agents(1, ("merge",))
    assert sorted(states(task)) == ["merging", "merging", "merging", "running"]
    assert states(task, JobKind.MERGE) == ["activated"]


def test_a_task_whose_merged_files_travel_is_done_when_they_have_arrived() -> None:
    alpha, _ = grid("ALPHA", "BETA", path="/data")
    task = submitted(parameters(mergeOutput=True, nEvents=20, includedSite=["ALPHA"]))
    run_agents(1, ("refine", "feed", "assign"))
    Dataset.objects.filter(task=task, type__in=OUTPUT_TYPES).update(collected_at="BETA_DISK")
    run_agents()
    run_jobs(alpha)
    run_agents(1, ("merge",))
    assert end(take(alpha)) == "transferring"
    assert states(task) == ["merging", "merging"]
    assert broken() == []
    moves = [TransferMove(id_) for id_ in Transfer.objects.values_list("id", flat=True)]
    assert len(moves) == 2
    move_transfers([TransferMove(move.id, new_key=uuid4()) for move in moves], "submitting", "test", claim_s=60).run()
    assert len(finish(moves, "test")) == 2
    assert (states(task), states(task, JobKind.MERGE)) == (["finished", "finished"], ["finished"])
    assert broken() == []


def test_merged_files_that_do_not_arrive_are_a_try_to_merge_them() -> None:
    alpha, _ = grid("ALPHA", "BETA", path="/data")
    task = submitted(parameters(mergeOutput=True, nEvents=20, includedSite=["ALPHA"]))
    run_agents(1, ("refine", "feed", "assign"))
    Dataset.objects.filter(task=task, type__in=OUTPUT_TYPES).update(collected_at="BETA_DISK")
    run_agents()
    run_jobs(alpha)
    run_agents(1, ("merge",))
    end(take(alpha))
    moves = [TransferMove(id_, "gone", reason="refused") for id_ in Transfer.objects.values_list("id", flat=True)]
    end_unmet(moves, "failed", "test")
    assert (states(task), states(task, JobKind.MERGE)) == (["merging", "merging"], ["failed"])
    assert set(File.objects.filter(type="trn_output").values_list("status", "attempt_nr")) == {("prepared", 1)}
    assert broken() == []


def test_events_of_files_wait_with_the_jobs_that_processed_them() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t3", "in.data", nFilesPerJob=None, nEventsPerJob=5, mergeOutput=True))
    run_agents()
    assert run_jobs(queue) == 4
    assert File.objects.filter(task=task, type="input", status="finished").count() == 0
    assert broken() == []
    run_agents(1)
    assert run_jobs(queue) == 1
    assert set(File.objects.filter(task=task, type="input").values_list("status", flat=True)) == {"finished"}
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert broken() == []


def test_a_log_alone_is_no_reason_to_wait_and_an_output_that_may_be_left_out_is_merged_where_it_is() -> None:
    (queue,) = grid("ALPHA")
    items = parameters()["jobParameters"]
    items[2]["allowNoOutput"] = True
    submitted(parameters(mergeOutput=True, nEvents=20, jobParameters=items))
    run_agents()
    for _ in range(2):
        leased = take(queue)
        report = good(leased.job_id)
        end(leased, replace(report, outputs=[o for o in report.outputs if ".log." in o.lfn]))
    run_agents(1, ("merge",))
    document = job_document(Job.objects.get(kind=JobKind.MERGE).id)
    assert (document["parameters"].strip(), [o["optional"] for o in document["outputs"]]) == ("", [True, False])


def test_logs_are_merged_where_merge_jobs_have_a_log_of_their_own() -> None:
    (queue,) = grid("ALPHA")
    log = {"type": "template", "param_type": "log", "dataset": "t1.mlog", "value": "t1.mlog.${SN}.tgz"}
    task = submitted(parameters(mergeOutput=True, nEvents=20, log_merge=log))
    run_agents()
    assert run_jobs(queue) == 2
    run_agents(1, ("merge",))
    document = job_document(Job.objects.get(kind=JobKind.MERGE).id)
    assert document["parameters"] == (
        "um.t1.EVT.000001.txt,um.t1.EVT.000002.txt:t1.EVT.000001.txt um.t1.log.000001.tgz,um.t1.log.000002.tgz:t1.log.000001.tgz"
    )
    assert [(o["lfn"], o["type"]) for o in document["outputs"]] == [
        ("t1.EVT.000001.txt", "output"), ("t1.log.000001.tgz", "output"), ("t1.mlog.000001.tgz", "log"),
    ]  # fmt: skip
    assert run_jobs(queue) == 1
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert broken() == []


def test_a_job_that_waits_for_a_merge_for_too_long_gives_its_inputs_back() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task()
    end(take(queue))
    Job.objects.filter(status="merging").update(status_since=TransactionNow() - timedelta(days=8))
    run_agents(1, ("reap",))
    assert states(task) == ["closed", "activated"]
    assert sorted(File.objects.filter(task=task, type="pseudo_input").values_list("status", flat=True)) == ["ready", "running"]
    assert broken() == []


def test_a_merge_job_leaves_an_inactive_queue_as_soon_as_its_priority_says() -> None:
    """The document exempts no kind of job; what waits is merged by another merge job."""
    (queue,) = grid("ALPHA")
    task = merging_task()
    run_jobs(queue)
    run_agents(1, ("merge",))
    ComputingQueue.objects.update(last_start=TransactionNow() - timedelta(hours=9))
    Job.objects.filter(kind=JobKind.MERGE).update(status_since=TransactionNow() - timedelta(hours=5))
    run_agents(1, ("reap",))
    assert states(task, JobKind.MERGE) == ["closed"]
    run_agents(1, ("merge",))
    assert states(task, JobKind.MERGE) == ["closed", "activated"]
    assert broken() == []


def test_a_merge_job_that_ran_out_of_memory_is_made_with_more_which_says_nothing_of_the_task() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task()
    run_jobs(queue)
    run_agents(1, ("merge",))
    end(take(queue), Report("failed", error_code="PAYLOAD_MEMORY", error_message="killed", metrics={"max_pss_mb": 2500}))
    run_agents(2, ("merge",))
    merges = Job.objects.filter(kind=JobKind.MERGE).order_by("id")
    assert list(merges.values_list("status", "spec__ram_mb")) == [("failed", 2000), ("activated", 3000)]
    task.refresh_from_db()
    assert task.ram_count == 500


def test_the_events_of_merged_files_are_those_of_the_files_before() -> None:
    (queue,) = grid("ALPHA")
    task = merging_task()
    for _ in range(2):
        leased = take(queue)
        report = good(leased.job_id)
        counted = [replace(o, n_events=10) if ".EVT." in o.lfn else o for o in report.outputs]
        end(leased, replace(report, outputs=counted))
    run_agents(1, ("merge",))
    assert run_jobs(queue) == 1
    assert CatalogueFile.objects.get(dataset__name="t1.EVT").n_events == 20
    assert File.objects.get(task=task, type="output").n_events == 20
    assert Dataset.objects.get(task=task, type="output").n_events == 20
    assert CatalogueFile.objects.get(dataset__name="t1.log").n_events is None
    assert broken() == []
