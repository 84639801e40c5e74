"""The end of a task says what became of its input, its datasets are closed and counted, a retry goes back to where it was."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow

from broker_site.foundation.agency.run import run_agent
from brokerage.agents import finish
from brokerage.ledger.lease import Lease
from brokerage.models import ComputingQueue, Job, JobChange, JobInput, JobRetryHistory, Site, StorageEndpoint
from brokerage.queries.invariants import look
from brokerage.queries.job_document import job_document
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from tests.api.test_commands import page
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, good, let_confirm, mark_storages, run_agents, run_jobs, take, try_take
from tests.stateful.scene import killed_at
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.commands import command
from workqueues.ledger.define import break_task
from workqueues.models import CatalogueDataset, Dataset, DatasetChange, EventRange, File, Task, TaskChange
from workqueues.states import INPUT_TYPES, TASK

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue(tmp_path: Path) -> ComputingQueue:
    made = grid("ALPHA", path=str(tmp_path))[0]
    mark_storages(tmp_path)
    return made


def faults() -> list[str]:
    return [f"{found.invariant.name}: {example}" for found in look() for example in found.examples]


def ended(task: Task) -> tuple[str, str, int]:
    """Status, reason and progress."""
    task.refresh_from_db()
    return task.status, task.error_dialog, task.progress


def missing(*numbers: int) -> Report:
    """The report of a job that did not find these files of in.data; they are on no disk."""
    return Report("failed", missing_inputs=[f"in.data.{i:06d}" for i in numbers], error_code="INPUT")


def confirm_losses() -> None:
    """The files are looked for twice, the second time long after."""
    run_agents()
    let_confirm()
    run_agents()


def path(task: Task) -> list[str]:
    return list(TaskChange.objects.filter(task_id=task.id).order_by("id").values_list("new", flat=True))


# Ends


def test_a_task_whose_inputs_are_all_lost_has_failed_and_says_so(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data"))
    run_agents()
    end(take(queue), missing(0, 1))
    confirm_losses()
    run_agents()
    assert ended(task) == ("failed", "none of 2 files was processed: 2 are lost or damaged", 0)
    dataset = Dataset.objects.get(type="input")
    assert (dataset.n_files, dataset.n_files_to_be_used, dataset.n_files_missing) == (2, 0, 2)
    assert task.ami_flag != "READY"
    assert faults() == []
    command(task.id, "retry", "user:ada")


def test_lost_files_count_against_progress_and_the_task_is_finished_and_not_done(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data", maxAttempt=2, nFilesPerJob=1, prodSourceLabel="managed"))
    run_agents()
    for report in (missing(0), None, BAD, None):
        end(take(queue), report)
    run_agents()
    end(take(queue), BAD)
    confirm_losses()
    run_agents()
    assert ended(task) == ("finished", "2 of 4 files were processed, 1 was given up, 1 is lost or damaged", 50)
    assert faults() == []


def test_a_lost_file_takes_nothing_from_a_sound_job_that_has_other_events_of_it(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 1)
    task = submitted(reading("t", "in.data", nFilesPerJob=None, nEventsPerJob=5))
    run_agents()
    sound, bad = take(queue), take(queue)
    end(bad, missing(0))
    confirm_losses()
    assert File.objects.get(type="input").status == "lost"
    assert (ended(task)[0], Job.objects.get(id=sound.job_id).kill_requested) == ("running", False)
    assert end(sound) == "finished"
    run_agents()
    assert ended(task)[:2] == ("finished", "no file was processed whole, but 5 events of 1 file; 1 is lost or damaged")
    assert faults() == []


@pytest.mark.parametrize(("step", "reached"), [([], "registered"), (["refine"], "defined")])
def test_a_task_that_is_finished_before_it_has_input_has_failed(queue: ComputingQueue, step: list[str], reached: str) -> None:
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data"))
    run_agents(1, step)
    assert ended(task)[0] == reached
    command(task.id, "finish", "user:ada")
    run_agents(2, ["command", "finish"])
    assert ended(task) == ("failed", "nothing was processed: it ended before its input was known", 0)


def test_a_child_that_is_finished_while_its_parent_runs_has_failed(queue: ComputingQueue) -> None:
    submitted(parameters("p"))
    run_agents()
    child = submitted(reading("child", "p.EVT", parentTaskName="p"))
    run_agents()
    command(child.id, "finish", "user:ada")
    run_agents(2, ["command", "finish"])
    assert ended(child)[:2] == ("failed", "nothing was processed: it ended before its input was known")


@pytest.mark.parametrize("label", ["user", "managed", "ptest"])
def test_an_empty_input_that_the_task_allows_ends_finished(queue: ComputingQueue, label: str) -> None:
    catalogue_dataset("in.data", 0)
    task = submitted(reading("t", "in.data", allowEmptyInput=True, prodSourceLabel=label))
    run_agents()
    assert ended(task)[:2] == ("finished", "its input has no files, which the task allows")
    assert set(Dataset.objects.values_list("status", flat=True)) == {"done"}
    assert faults() == []


def outcome(task: Task) -> tuple[str, dict[str, int]]:
    """The end that follows from the files as they are now, and what its reason must count."""
    files = list(File.objects.filter(task_id=task.id, dataset__master=None, type="input").values_list("status", flat=True))
    part = EventRange.objects.filter(task_id=task.id, status="done").exists()
    told = {"given up": files.count("failed"), "lost or damaged": files.count("lost"), "not used": 0}
    if files and set(files) == {"finished"}:
        return "done", {}
    return ("finished" if part or "finished" in files else "failed"), {what: n for what, n in told.items() if n}


@pytest.mark.parametrize("seed", range(4))
def test_whatever_becomes_of_the_jobs_the_end_follows_from_the_files(queue: ComputingQueue, seed: int) -> None:
    """Good and bad ends, files that are lost, a finish or a kill in between, retries: by files and by events."""
    random = Random(seed)
    catalogue_dataset("in.data", 5)
    cut = {"nFilesPerJob": None, "nEventsPerJob": 15} if seed % 2 else {"nFilesPerJob": 2}
    task = submitted(reading("t", "in.data", prodSourceLabel="managed", maxAttempt=2, **cut))
    run_agents(1)
    for step in range(40):
        if ended(task)[0] in TASK.final:
            if task.status != "aborted":
                expected, counts = outcome(task)
                numbers = re.findall(r"(\d+) (?:is|are|was|were) (given up|lost or damaged|not used)", task.error_dialog)
                assert (task.status, {what: int(n) for n, what in numbers}) == (expected, counts), task.error_dialog
                done = File.objects.filter(task_id=task.id, type="input", status="finished").count()
                assert task.progress == 100 * done // 5
            assert faults() == []
            if task.status == "done" or step > 25:
                break
            command(task.id, "retry", "user:ada")
        elif random.random() < 0.1:
            command(task.id, random.choice(["finish", "kill"]), "user:ada")
        elif (leased := try_take(queue)) is not None:
            inputs = [i["lfn"] for i in job_document(leased.job_id)["inputs"]]
            bad = Report("failed", missing_inputs=inputs[:1]) if random.random() < 0.3 else BAD
            end(leased, random.choice([good(leased.job_id), good(leased.job_id), bad]))
        let_confirm()
        run_agents(1, ["refine", "feed", "assign", "generate", "command", "finish"])
    assert task.status in TASK.final


# Retry


def killed(task: Task) -> None:
    command(task.id, "kill", "user:ada")
    run_agents(1, ["command"])
    assert ended(task)[0] == "aborted"


@pytest.mark.parametrize(("steps", "back"), [([], "registered"), (["refine"], "defined"), (["refine", "feed"], "assigning")])
@pytest.mark.parametrize("order", ["kill", "finish"])
def test_a_retry_goes_back_to_the_first_step_that_was_not_passed(
    queue: ComputingQueue, steps: list[str], back: str, order: str
) -> None:
    Site.objects.filter(name="SITE_ALPHA").update(nucleus=True)
    StorageEndpoint.objects.update(free_gb=50_000)
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data", prodSourceLabel="managed"))
    run_agents(1, steps)
    assert ended(task)[0] == back
    command(task.id, order, "user:ada")
    run_agents(2, ["command", "finish"])
    command(task.id, "retry", "user:ada")
    run_agents(1, ["command"])
    assert ended(task)[0] == back
    run_agents()
    assert (ended(task)[0], task.nucleus) == ("running", "SITE_ALPHA")
    assert set(Dataset.objects.filter(type="output").values_list("collected_at", flat=True)) == {"ALPHA_DISK"}
    run_jobs(queue)
    run_agents()
    assert ended(task) == ("done", "", 100)
    assert faults() == []


def test_a_task_that_is_exhausted_before_it_was_defined_is_defined_by_a_retry(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data"))
    Task.objects.filter(id=task.id).update(status="pending", old_status="registered")
    Task.objects.filter(id=task.id).update(status="exhausted")
    command(task.id, "retry", "user:ada")
    run_agents()
    assert path(task)[:5] == ["registered", "toretry", "registered", "defined", "ready"]
    assert ended(task)[0] == "running"


def test_a_child_that_was_killed_with_its_parent_says_to_retry_the_parent_first(queue: ComputingQueue) -> None:
    parent = submitted(parameters("p"))
    run_agents()
    child = submitted(reading("child", "p.EVT", parentTaskName="p"))
    run_agents()
    command(parent.id, "kill", "user:ada")
    run_agents(3)
    assert (ended(parent)[0], ended(child)[0]) == ("aborted", "aborted")
    command(child.id, "retry", "user:ada")
    run_agents()
    assert ended(child)[:2] == ("aborted", f"not retried: its parent, task {parent.id}, is aborted; retry that first")
    command(parent.id, "retry", "user:ada")
    run_agents(1, ["command"])
    command(child.id, "retry", "user:ada")
    run_agents()
    assert ended(child)[0] == "pending"
    run_jobs(queue)
    run_agents(3)
    run_jobs(queue)
    run_agents()
    assert (ended(parent)[0], ended(child)[0]) == ("done", "done")


def test_a_killed_task_with_nothing_left_to_run_is_brought_to_its_end_by_a_retry(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data"))
    run_agents()
    run_jobs(queue)
    killed(task)
    command(task.id, "retry", "user:ada")
    run_agents()
    assert ended(task) == ("done", "", 100)


def test_a_retry_that_finds_nothing_to_run_keeps_the_reason_of_the_end(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 0)
    task = submitted(reading("t", "in.data", allowEmptyInput=True))
    run_agents()
    command(task.id, "retry", "user:ada", "once more")
    run_agents()
    assert ended(task)[:2] == ("finished", "nothing is left to run; its input has no files, which the task allows")
    written = CatalogueDataset.objects.filter(name__startswith="t.").values_list("state", flat=True)
    assert set(written) == {"closed"}, "and opens no dataset"


# Datasets


def test_the_files_of_an_output_are_those_that_were_made_with_their_events(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data"))
    run_agents()
    end(take(queue), BAD)
    command(task.id, "kill", "user:ada")
    run_agents()
    assert ended(task)[0] == "aborted"
    command(task.id, "retry", "user:ada")
    run_agents()
    while (leased := try_take(queue)) is not None:
        outputs = [ReportedOutput(o.lfn, o.size, o.checksum, o.storage, 7) for o in good(leased.job_id).outputs]
        end(leased, Report("finished", outputs))
    run_agents()
    assert ended(task)[0] == "done"
    output = Dataset.objects.get(type="output")
    counts = (output.n_files, output.n_files_to_be_used, output.n_files_finished, output.n_files_failed, output.n_events)
    assert counts == (2, 2, 2, 2, 14)
    assert faults() == []


def ended_by(how: str, task: Task, queue: ComputingQueue) -> None:
    run_agents()
    if how in ("kill", "finish"):
        end(take(queue))
        command(task.id, how, "user:ada")
        for job in Job.objects.filter(ended_at=None):
            run_agents(1, ["command"])
            job.refresh_from_db()
            if job.ended_at is None:
                end(Lease(job.id, job.epoch, 1, task.id, 60), Report("failed", killed=True))
    elif how == "break":
        claim_tasks("test", 60, ["running"], 1)
        break_task("test", task.id, "it cannot be carried out", "test")
    else:
        run_jobs(queue)
    run_agents()


@pytest.mark.parametrize(("how", "status"), [("kill", "aborted"), ("finish", "finished"), ("break", "broken"), ("run", "done")])
def test_nothing_is_left_open_on_a_task_that_ended(queue: ComputingQueue, how: str, status: str) -> None:
    catalogue_dataset("in.data", 4)
    seed = {"type": "template", "param_type": "number", "value": "--seed ${RNDMSEED}"}
    task = submitted(reading("t", "in.data", jobParameters=[*reading("t", "in.data")["jobParameters"], seed]))
    ended_by(how, task, queue)
    assert ended(task)[0] == status, task.error_dialog
    assert {d.dataset_name: d.status for d in Dataset.objects.exclude(status="done")} == {}
    assert faults() == []
    if status in ("aborted", "finished"):
        command(task.id, "retry", "user:ada")
        run_agents()
        assert set(Dataset.objects.filter(type__in=INPUT_TYPES).values_list("status", flat=True)) == {"ready"}
        run_jobs(queue)
        run_agents()
        assert ended(task)[0] == "done"
        assert faults() == []


@pytest.mark.parametrize(
    ("reports", "why"),
    [
        ([None, None], "2 files finished"),
        ([BAD, None], "1 file finished, 1 failed"),
        ([BAD, BAD], "no file finished, 2 failed"),
        ([], "no file was made"),
    ],
)
def test_the_history_of_a_closed_output_says_what_is_in_it(queue: ComputingQueue, reports: list[Report | None], why: str) -> None:
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data", maxAttempt=1))
    run_agents(1, ["refine", "feed", *(["generate"] if reports else [])])
    for report in reports:
        end(take(queue), report)
    if not reports:
        command(task.id, "finish", "user:ada")
    run_agents()
    assert task.id and ended(task)[0] in ("done", "finished", "failed")
    for dataset in Dataset.objects.exclude(type__in=INPUT_TYPES):
        last = DatasetChange.objects.filter(dataset_id=dataset.id).latest("id")
        assert (last.new, last.why) == ("done", why)
    shown = page("olga", ("demo", "operator")).get(f"/tasks/{task.id}/").text
    assert ("done, empty" in shown) == why.startswith("no file")


# Histories of jobs


def test_retries_are_linked_by_the_master_files_that_came_back_and_by_nothing_else(queue: ComputingQueue) -> None:
    """A sequence record that goes on to another file's job tells nothing of that job's past."""
    catalogue_dataset("in.data", 3)
    items = reading("t", "in.data")["jobParameters"]
    sequence: dict[str, Any] = {
        "type": "template",
        "param_type": "pseudo_input",
        "dataset": "seq_number",
        "value": "--n ${SEQNUMBER}",
    }
    submitted(reading("t", "in.data", nFilesPerJob=1, jobParameters=[*items, sequence]))
    run_agents()
    before = {j: set(files_of(j)) for j in Job.objects.values_list("id", flat=True)}
    taken = [take(queue) for _ in range(3)]
    end(taken[0], BAD)
    end(taken[1])
    end(taken[2], BAD)
    records = File.objects.filter(type="pseudo_input", status="ready").order_by("id")
    for record, job in zip(records, [taken[2].job_id, taken[0].job_id], strict=True):
        File.objects.filter(id=record.id).update(job_id=job)
    run_agents()
    links = set(JobRetryHistory.objects.values_list("old_job_id", "new_job_id", "origin_job_id"))
    new = [j for j in Job.objects.order_by("id").values_list("id", flat=True) if j not in before]
    assert links == {(old, job, old) for job in new for old, files in before.items() if files & set(files_of(job))}
    assert len(links) == 2


def files_of(job_id: int) -> list[int]:
    """Master files that a job has or had."""
    inputs = JobInput.objects.filter(job_id=job_id).values("file_id")
    return list(File.objects.filter(id__in=inputs, dataset__dataset_name="in.data").values_list("id", flat=True))


def test_every_move_of_a_job_says_why(queue: ComputingQueue) -> None:
    submitted(parameters("t", nEvents=20))
    run_agents()
    end(take(queue))
    end(take(queue), BAD)
    moves = JobChange.objects.filter(job_id=Job.objects.order_by("id")[0].id).order_by("id").values_list("new", "why")
    assert list(moves) == [
        ("activated", "made for ALPHA"),
        ("sent", "leased by a pilot"),
        ("running", "pilot reports running"),
        ("holding", "pilot reports finished"),
        ("finished", "2 outputs registered"),
    ]
    assert not JobChange.objects.filter(why="").exists()


def test_children_are_killed_also_where_the_agent_dies_as_their_parent_ends_badly() -> None:
    (queue,) = grid("ALPHA")
    parent = submitted(parameters("p", goal=90, failWhenGoalUnreached=True, maxAttempt=1))
    child = submitted(reading("c", "p.EVT", parentTaskName="p", noWaitParent=True, noInputPooling=True))
    run_agents(3)
    end(take(queue))
    while (leased := try_take(queue)) is not None:
        end(leased, BAD)
    Task.objects.filter(id=child.id).update(next_look_at=None)
    run_agents(2, ("wake", "refine", "feed", "generate"))
    child.refresh_from_db()
    assert child.status in TASK.generating, "it does not wait for its parent"
    with killed_at(finish, "kill_children", after=False):
        run_agent("finish", looked=True)
        run_agent("finish", looked=True)
    Task.objects.exclude(locked_by="").update(locked_time=TransactionNow() - timedelta(seconds=1))
    run_agents(2)
    for task in (parent, child):
        task.refresh_from_db()
    assert (parent.status, child.status) == ("failed", "aborted")
    assert child.error_dialog == f"the parent task {parent.id} ended badly"
