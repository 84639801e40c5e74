"""From a submitted task to finished files, agent by agent, with the ledger's verbs in place of real pilots."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from django.db.models.functions import Now

from brokerage.models import Decision, Job, JobRetryHistory
from brokerage.queries.invariants import look
from brokerage.queries.job_document import job_document
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import CatalogueFile, Dataset, File, OutputTemplate, Task, TaskChange
from workqueues.states import TASK

pytestmark = pytest.mark.django_db


def test_a_task_without_input_becomes_jobs_with_their_own_seeds_and_numbers_and_ends_done() -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters(nEvents=40, nEventsPerJob=10))
    run_agents()
    task.refresh_from_db()
    assert task.status == "running", task.error_dialog
    assert Job.objects.filter(status="activated", resource_type="SCORE").count() == 4
    params = sorted(job_document(j.id)["parameters"] for j in Job.objects.all())
    assert params == [f"--seed {i} --run {i} --out=t1.EVT.{i:06d}.txt" for i in range(1, 5)]
    assert run_jobs(queue) == 4
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.progress) == ("done", 100)
    assert set(Dataset.objects.values_list("status", flat=True)) == {"done"}
    assert set(File.objects.values_list("status", flat=True)) == {"finished"}
    states = list(TaskChange.objects.filter(task_id=task.id).order_by("epoch").values_list("new", flat=True))
    assert states[0] in TASK.initial
    assert all(TASK.allows(old, new) for old, new in pairwise(states))
    assert CatalogueFile.objects.filter(dataset__name="t1.EVT", replicas__storage="ALPHA_DISK").count() == 4
    assert set(Decision.objects.values_list("outcome", flat=True)) == {"assign"}


def test_a_failed_try_gives_its_files_and_its_seed_back_and_the_job_that_follows_knows_where_it_came_from() -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters(nEvents=20, nEventsPerJob=10, maxAttempt=2))
    run_agents()
    assert run_jobs(queue, BAD) == 2
    run_agents()
    again = sorted(job_document(j.id)["parameters"] for j in Job.objects.filter(status="activated"))
    assert again == [f"--seed {i} --run {i} --out=t1.EVT.{i + 2:06d}.txt" for i in (1, 2)]
    first, second, third, fourth = Job.objects.order_by("id").values_list("id", flat=True)
    assert set(JobRetryHistory.objects.values_list("old_job_id", "new_job_id", "origin_job_id")) == {
        (first, third, first),
        (second, fourth, second),
    }
    assert run_jobs(queue) == 2
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_files_out_of_tries_end_the_task_without_them() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t2", "in.data", maxAttempt=1))
    run_agents()
    assert run_jobs(queue, BAD) == 2
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.error_dialog) == ("failed", "none of 4 files was processed: 4 were given up")
    assert set(File.objects.filter(type="input").values_list("status", "attempt_nr")) == {("failed", 1)}


def test_the_share_of_failed_jobs_is_kept_with_the_task_that_ended() -> None:
    (queue,) = grid()
    task = submitted(parameters(nEvents=30, maxAttempt=1))
    run_agents()
    for report in (BAD, None, None):
        end(take(queue), report)
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.failure_rate) == ("finished", 33)


def test_the_share_of_failed_jobs_and_the_progress_are_kept_with_a_task_that_was_killed() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 8)
    task = submitted(reading("t3", "in.data", maxAttempt=1))
    run_agents()
    for report in (BAD, None):
        end(take(queue), report)
    command(task.id, "kill", "user:ada")
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.failure_rate, task.progress) == ("aborted", 50, 25)


def test_no_serial_number_goes_beyond_the_largest_of_its_template() -> None:
    grid()
    task = submitted(parameters(name="t1"))
    run_agents(1, ("refine", "feed", "assign"))
    templates = OutputTemplate.objects.filter(task_id=task.id)
    assert set(templates.values_list("max_serial_nr", flat=True)) == {2**31 - 1}
    templates.filter(out_type="log").update(serial_nr=2**31 - 4)
    run_agents(1)
    task.refresh_from_db()
    assert not Job.objects.exists()
    assert task.error_dialog.startswith("4 serial numbers are needed for t1.log.${SN}.tgz, and 3 are left up to 2147483647")
    assert [f for f in look() if f.violations] == []


def test_a_child_waits_for_its_parent_and_reads_what_it_made() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters("parent", nEvents=20, nEventsPerJob=10))
    child = submitted(reading("child", "parent.EVT", parentTaskName="parent"))
    run_agents()
    child.refresh_from_db()
    assert (child.status, child.frozen_time) == ("pending", None)
    assert "parent" in child.error_dialog
    run_jobs(queue)
    run_agents(rounds=3)
    child.refresh_from_db()
    assert child.status == "running", child.error_dialog
    run_jobs(queue)
    run_agents()
    child.refresh_from_db()
    assert child.status == "done"


def test_a_task_that_no_queue_can_run_is_pending_and_says_why() -> None:
    grid("ALPHA")
    task = submitted(parameters(ramCount=64000))
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.old_status) == ("pending", "ready")
    assert task.error_dialog.startswith("the only queue can never take it; the closest is ALPHA")
    assert task.next_look_at is not None
    assert not File.objects.filter(status="picked").exists()
    assert Decision.objects.get().outcome == "pending"


def test_a_scouting_task_with_files_to_use_gets_jobs_and_stays_scouting() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t3", "in.data"))
    run_agents(1, ("refine", "feed", "assign"))
    Task.objects.filter(id=task.id).update(status="scouting")
    run_agents(1, ("generate",))
    task.refresh_from_db()
    assert task.status == "scouting"
    assert Job.objects.filter(task_id=task.id, status="activated").exists()


def test_a_throttled_task_whose_files_are_all_settled_comes_to_its_end() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t4", "in.data"))
    run_agents()
    Task.objects.filter(id=task.id).update(status="throttled", old_status="running")
    assert run_jobs(queue)
    run_agents(3, ("finish",))
    task.refresh_from_db()
    assert task.status == "done"


def test_a_throttled_task_goes_on_once_its_time_has_come() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t5", "in.data"))
    run_agents()
    for wait, status in ((timedelta(hours=1), "throttled"), (-timedelta(hours=1), "running")):
        Task.objects.filter(id=task.id).update(status="throttled", old_status="running", next_look_at=Now() + wait)
        run_agents(1, ("wake",))
        task.refresh_from_db()
        assert task.status == status
