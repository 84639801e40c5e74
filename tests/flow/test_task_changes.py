"""What changes of a task do to it and its jobs: priority, share, split rule, needs, tries, release."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.principal import Principal
from brokerage.ledger.task_changes import change_task
from brokerage.models import ComputingQueue, Job, TaskQueue
from brokerage.queries.waiting import WAITING
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take, try_take
from tests.pages.scene import visitor
from workqueues.ledger.commands import command
from workqueues.ledger.task_changes import Changed
from workqueues.models import Dataset, File, FileChange, GlobalShare, Task
from workqueues.rules.task.changes import CHANGES

pytestmark = pytest.mark.django_db

PETRA = Principal("user", "petra", roles={"demo": frozenset({"production"})})


@pytest.fixture
def queue() -> ComputingQueue:
    gdpconfig.set_override("jobbroker", "NQUEUELIMITSITE", 100_000, who="ada", why="never full")
    gdpconfig.set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    (made,) = grid("ALPHA")
    for name, label in (("Work", ".*"), ("Express", "none")):
        GlobalShare.objects.create(name=name, vo="demo", value=50, prod_source_label=label, throttled=False)
    return made


def running(name: str = "t", files: int = 4, **more: Any) -> Task:
    """A task with a job for each file; they wait."""
    catalogue_dataset(f"{name}.data", files)
    task = submitted(reading(name, f"{name}.data", **{"nFilesPerJob": 1, **more}))
    run_agents(1, ("refine", "feed", "assign", "generate"))
    task.refresh_from_db()
    return task


def change(task: Task, name: str, **wish: Any) -> Changed:
    asked, problems = CHANGES[name].read(wish)
    assert not problems
    changed = change_task(PETRA, task, CHANGES[name], asked)[1]
    task.refresh_from_db()
    return changed


def test_a_changed_priority_is_that_of_all_jobs_that_have_not_ended_and_of_later_ones(queue: ComputingQueue) -> None:
    gdpconfig.set_override("jobgen", "USER_JOBS_PER_POINT", 0, who="ada", why="all jobs have the priority of their task")
    other, task = running("a", taskPriority=600), running("b", taskPriority=500)
    held = take(queue)
    assert Job.objects.get(id=held.job_id).task_id == other.id
    changed = change(task, "priority", priority=800)
    assert "4 jobs of it that have not ended" in changed.told
    assert (task.current_priority, task.task_priority) == (800, 500)
    assert set(Job.objects.filter(task_id=task.id).values_list("priority", "ready_priority")) == {(800, -800)}
    assert set(Job.objects.filter(task_id=other.id).values_list("priority", flat=True)) == {600}
    assert Job.objects.get(id=take(queue).job_id).task_id == task.id
    change(other, "priority", priority=100)
    assert Job.objects.get(id=held.job_id).priority == 100, "a running one too"
    end(take(queue), BAD)
    run_agents(1)
    assert set(Job.objects.filter(task_id=task.id).values_list("priority", flat=True)) == {800}


def test_a_retry_restores_priority_and_share(queue: ComputingQueue) -> None:
    task = running(maxAttempt=1)
    change(task, "priority", priority=800)
    change(task, "share", share="Express")
    run_jobs(queue, BAD)
    run_agents(3)
    task.refresh_from_db()
    assert (task.status, task.current_priority, task.gshare) == ("failed", 800, "Express")
    command(task.id, "retry", "user:ada")
    run_agents(1, ["command"])
    task.refresh_from_db()
    assert (task.current_priority, task.gshare) == (task.task_priority, "Work")


def test_waiting_jobs_move_to_the_task_queues_of_another_share(queue: ComputingQueue) -> None:
    task = running()
    old = TaskQueue.objects.get()
    changed = change(task, "share", share="Express")
    assert (changed.before, changed.after) == ({"share": "Work"}, {"share": "Express"})
    assert task.gshare == "Express"
    (new,) = {job.task_queue for job in Job.objects.select_related("task_queue")}
    assert (new.gshare, new.computing_queue_id, new.ram_mb, new.core_count) == ("Express", queue.id, old.ram_mb, old.core_count)
    assert {w.id for w in WAITING.of(queue.id, fresh=True).rows} == {new.id}
    assert run_jobs(queue) == 4
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_only_new_jobs_follow_another_split_rule(queue: ComputingQueue) -> None:
    task = running(files=6, maxAttempt=3)
    assert Job.objects.count() == 6
    change(task, "split-rule", rule="NF", value=3)
    assert Job.objects.filter(ended_at=None).count() == 6
    run_jobs(queue, BAD)
    run_agents(1)
    assert Job.objects.filter(ended_at=None).count() == 2
    change(task, "split-rule", rule="nFilesPerJob", value=None)
    change(task, "split-rule", rule="nMaxFilesPerJob", value=2)
    assert task.split_rule.endswith("MF=2")
    assert "NF=" not in task.split_rule
    run_jobs(queue, BAD)
    run_agents(1)
    assert Job.objects.filter(ended_at=None).count() == 3


def test_other_needs_are_those_of_new_jobs_and_the_class_of_resources_follows(queue: ComputingQueue) -> None:
    task = running(files=1)
    assert (task.ram_count, task.resource_type) == (500, "SCORE")
    changed = change(task, "attributes", ramCount=4000, walltime=7, cpuTime=2.5)
    assert changed.before["resource_type"] == "SCORE"
    assert (task.ram_count, task.walltime, task.cpu_time, task.resource_type) == (4000, 7, 2.5, "SCORE_HIMEM")
    assert Job.objects.get().spec.ram_mb < 1000
    run_jobs(queue, BAD)
    run_agents(1)
    new = Job.objects.select_related("spec").get(ended_at=None)
    assert (new.spec.ram_mb, new.resource_type) == (4000, "SCORE_HIMEM")


def test_a_task_that_waits_for_memory_goes_on_once_it_asks_for_less(queue: ComputingQueue) -> None:
    gdpconfig.set_override("core", "POLICY_analysis", "analysis", who="ada", why="test")
    task = running(files=1, ramCount=20_000)
    assert (task.status, Job.objects.count()) == ("pending", 0)
    changed = change(task, "attributes", ramCount=1000)
    assert (changed.before["ram_count"], changed.after["ram_count"]) == (20_000, 1000)
    run_agents(1, ("wake", "generate"))
    assert Job.objects.get().status == "activated"


def test_why_tells_that_its_needs_were_changed_between_two_decisions(queue: ComputingQueue, client: Client) -> None:
    gdpconfig.set_override("core", "POLICY_analysis", "analysis", who="ada", why="test")
    task = running(files=1, ramCount=20_000)
    change(task, "attributes", ramCount=1000, comment="measured")
    change(task, "attributes", ramCount=1000)
    run_agents(1, ("wake", "generate"))
    client.force_login(visitor())
    (told,) = client.get(f"/api/v1/tasks/{task.id}/waiting/").json()["needs_changes"]
    assert (told["who"], told["why"]) == ("user:petra", "measured")
    sentence = told["sentence"]
    assert sentence.startswith("petra changed its needs, ")
    assert "memory from 20,000 to 1,000\N{NO-BREAK SPACE}MB" in sentence
    assert sentence in client.get(f"/tasks/{task.id}/brokerage/").text
    assert "needs changed by hand" in client.get(f"/tasks/{task.id}/plots/").text
    out = io.StringIO()
    call_command("explain", str(task.id), stdout=out)
    assert f"UTC {sentence}" in out.getvalue()


def test_what_is_changed_of_a_paused_task_holds_once_it_is_resumed(queue: ComputingQueue) -> None:
    task = running()
    command(task.id, "pause", "user:ada")
    run_agents(1)
    change(task, "share", share="Express")
    change(task, "priority", priority=700)
    assert set(Job.objects.values_list("status", "ready_priority")) == {("throttled", None)}
    command(task.id, "resume", "user:ada")
    run_agents(1)
    jobs = Job.objects.values_list("status", "ready_priority", "task_queue__gshare")
    assert set(jobs) == {("activated", -700, "Express")}


def test_inputs_that_were_given_up_get_more_tries_while_the_task_lives(queue: ComputingQueue) -> None:
    task = running(files=3, maxAttempt=1)
    for _ in range(2):
        end(take(queue), BAD)
    assert sorted(File.objects.filter(type="input").values_list("status", flat=True)) == ["failed", "failed", "running"]
    changed = change(task, "tries", n=2)
    assert changed.after == {"tries": 2, "files": 0, "given_up": 2}
    assert changed.told == f"2 input files of task {task.id} have 2 more tries, 2 of which had been given up."
    assert FileChange.objects.filter(why="more tries", who="user:petra").count() == 2
    dataset = Dataset.objects.get(type="input")
    assert (dataset.n_files_used, dataset.n_files_failed) == (1, 0)
    run_agents(1)
    assert run_jobs(queue) == 3
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_ready_inputs_get_more_tries_too_and_those_without_a_limit_keep_none(queue: ComputingQueue) -> None:
    task = running(files=1, maxAttempt=2)
    end(take(queue), BAD)
    changed = change(task, "tries")
    file = File.objects.get(type="input")
    assert (file.status, file.attempt_nr, file.max_attempt, file.max_failure) == ("ready", 1, 7, None)
    assert changed.told == f"1 input file of task {task.id} has 5 more tries."


def test_released_inputs_wait_for_no_pause_and_no_tape(queue: ComputingQueue) -> None:
    task = running(files=2)
    end(take(queue), BAD)
    File.objects.filter(status="ready", type="input").update(retry_due="2100-01-01T00:00:00Z")
    catalogue_dataset("tape.data", 2, storage="NOWHERE")
    Task.objects.filter(id=task.id).update(next_look_at="2100-01-01T00:00:00Z")
    changed = change(task, "release")
    assert changed.after == {"files": 1}
    assert task.next_look_at is None
    run_agents(1, ["generate"])
    assert Job.objects.filter(task_id=task.id, ended_at=None).count() == 2
    assert FileChange.objects.filter(why="released", who="user:petra").count() == 1


def test_a_pending_task_is_looked_at_when_it_is_released(queue: ComputingQueue) -> None:
    ComputingQueue.objects.update(status="offline")
    task = running()
    run_agents(1, ["generate"])
    task.refresh_from_db()
    assert task.status == "pending"
    ComputingQueue.objects.update(status="online")
    Task.objects.update(next_look_at="2100-01-01T00:00:00Z")
    change(task, "release")
    run_agents(1, ("wake", "generate"))
    task.refresh_from_db()
    assert try_take(queue) is not None
