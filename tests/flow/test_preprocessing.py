"""Tasks with a step before all others: one job fills in their parameters (preproSpec)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from brokerage.models import ComputingQueue, Job, JobResult, JobSpec
from brokerage.queries.invariants import look
from brokerage.queries.job_document import job_document
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import headline
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, good, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import CatalogueFile, Dataset, Task, TaskChange

pytestmark = pytest.mark.django_db

SPEC = {"transPath": "choose.py", "jobParameters": "--task $JEDITASKID --out jobMetadata.json"}


def agents(rounds: int = 2) -> None:
    """Those through whose hands such a task goes."""
    run_agents(rounds, ("refine", "feed", "generate", "command", "finish"))


def broken() -> list[str]:
    return [f"{f.invariant.name}: {f.violations}" for f in look() if f.violations]


def kinds(task: Task) -> list[tuple[str, str]]:
    rows = Job.objects.filter(task_id=task.id).order_by("id").values_list("kind", "status")
    return [(JobKind(kind).label, status) for kind, status in rows]


def choosing(**more: Any) -> Task:
    """A task whose input and number of files are chosen by a job, looked at by the agents."""
    base = {"preproSpec": SPEC, "nFiles": "N_FILES", "cpuTime": 10}
    task = submitted(reading("t1", "CHOSEN", **{**base, **more}))
    agents()
    task.refresh_from_db()
    return task


def step(queue: ComputingQueue, values: dict[str, Any]) -> str:
    """The job of the step ends, and says this; jobs of other VOs may have had their turn before."""
    leased = take(queue)
    while Job.objects.get(id=leased.job_id).kind != JobKind.PREPROCESS:
        leased = take(queue)
    return end(leased, replace(good(leased.job_id), metadata=values))


def test_a_job_chooses_the_input_and_then_the_task_runs_as_any_other() -> None:
    (queue,) = grid("ALPHA", path="/data")
    name = catalogue_dataset("mc.chosen", 4).name
    task = choosing()
    assert task.status == "preprocessing", task.error_dialog
    assert headline(task_status(task)).startswith("Preprocessing: ")
    assert kinds(task) == [("preprocess", "activated")]
    job, spec = Job.objects.get(), JobSpec.objects.get()
    assert (job.core_count, spec.transformation) == (1, "choose.py")
    document = job_document(job.id)
    assert document["parameters"] == f"--task {task.id} --out jobMetadata.json"
    assert document["metadata_file"] == "jobMetadata.json"
    assert [(o["lfn"], o["type"]) for o in document["outputs"]] == [(f"panda.pp.log.{task.id}.000001.log.tgz", "log")]
    assert broken() == []
    assert step(queue, {"CHOSEN": name, "N_FILES": 2, "NOBODY": 1}) == "finished"
    agents(4)
    task.refresh_from_db()
    assert (task.status, task.cpu_time, task.trans_path) == ("running", 10, "make_events.py"), task.error_dialog
    assert task.params.task_params["jobParameters"][0]["dataset"] == name
    assert task.params.task_params["nFiles"] == 2
    change = TaskChange.objects.get(task_id=task.id, old="preprocessing", new="registered")
    assert change.who == f"job:{job.id}"
    assert "nFiles 2 (was N_FILES)" in change.why
    assert "no parameter is NOBODY" in change.why
    assert kinds(task) == [("preprocess", "finished"), ("normal", "activated")]
    assert broken() == []
    assert run_jobs(queue) == 1
    agents(3)
    task.refresh_from_db()
    assert (task.status, task.progress) == ("done", 100), task.error_dialog
    assert CatalogueFile.objects.filter(dataset__name=f"panda.pp.log.{task.id}").count() == 1
    assert broken() == []
    command(task.id, "incexec", "user:ada", "is there more?")
    agents(4)
    task.refresh_from_db()
    assert task.status == "done"
    assert [kind for kind, _ in kinds(task)] == ["preprocess", "normal"], "what was done is not repeated"
    assert broken() == []


def test_a_step_that_fails_three_times_fails_its_task_and_a_retry_makes_it_again() -> None:
    (queue,) = grid("ALPHA")
    name = catalogue_dataset("mc.chosen", 2).name
    task = choosing(maxAttempt=1)
    leased = take(queue)
    assert end(leased, good(leased.job_id)) == "failed"
    assert JobResult.objects.get(job_id=leased.job_id).error_code == "BAD_METADATA"
    for _ in range(2):
        agents()
        assert end(take(queue), BAD) == "failed"
    agents(3)
    task.refresh_from_db()
    assert task.status == "failed"
    assert "preprocessing job failed" in task.error_dialog
    assert broken() == []
    command(task.id, "retry", "user:ada", "")
    agents(3)
    task.refresh_from_db()
    assert task.status == "preprocessing", task.error_dialog
    assert kinds(task)[3:] == [("preprocess", "activated")]
    command(task.id, "pause", "user:ada", "")
    agents()
    command(task.id, "resume", "user:ada", "")
    agents()
    assert step(queue, {"CHOSEN": name, "N_FILES": 2}) == "finished"
    agents(4)
    task.refresh_from_db()
    assert task.status == "running", task.error_dialog
    assert broken() == []
    assert run_jobs(queue, BAD) == 1
    agents(2)
    task.refresh_from_db()
    assert task.status == "failed"
    command(task.id, "retry", "user:ada", "")
    agents(3)
    task.refresh_from_db()
    assert task.status == "running"
    assert [kind for kind, _ in kinds(task)].count("preprocess") == 4, "its step was done"
    assert broken() == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"CHOSEN": "mc.nowhere", "N_FILES": 1}, "the catalogue has no dataset mc.nowhere"),
        ({"CHOSEN": "mc.chosen"}, "nFiles"),
        ({"CHOSEN": "mc.chosen", "N_FILES": 1, "USED": "foreign"}, "VO demo has no task"),
        ({"CHOSEN": "mc.chosen", "N_FILES": 1, "ada": "bob"}, "userName: the preprocessing step may not fill it in"),
    ],
)
def test_what_is_filled_in_is_judged_as_at_a_submission(values: dict[str, Any], reason: str) -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("mc.chosen", 2)
    foreign = submitted(parameters("foreign", vo="other"))
    task = choosing(skipFilesUsedBy="USED" if "USED" in values else None)
    step(queue, {name: foreign.id if value == "foreign" else value for name, value in values.items()})
    agents(3)
    task.refresh_from_db()
    assert task.status == "broken"
    assert reason in task.error_dialog
    assert broken() == []


def test_a_task_that_is_stopped_before_its_step_is_over_does_it_when_it_is_run_again() -> None:
    (queue,) = grid("ALPHA")
    name = catalogue_dataset("mc.chosen", 2).name
    task = choosing()
    leased = take(queue)
    command(task.id, "finish", "user:ada", "soft finish")
    agents()
    end(leased, replace(good(leased.job_id), metadata={"CHOSEN": name, "N_FILES": 2}))
    agents()
    task.refresh_from_db()
    assert (task.status, "before its preprocessing step" in task.error_dialog) == ("failed", True), task.error_dialog
    assert broken() == []
    command(task.id, "incexec", "user:ada", "", {"nFilesPerJob": 1})
    agents()
    task.refresh_from_db()
    assert task.status == "preprocessing", task.error_dialog
    command(task.id, "kill", "user:ada", "")
    agents()
    task.refresh_from_db()
    assert task.status == "aborted"
    assert broken() == []
    command(task.id, "retry", "user:ada", "")
    agents()
    assert step(queue, {"CHOSEN": name, "N_FILES": 2}) == "finished"
    agents(3)
    task.refresh_from_db()
    assert task.status == "running", task.error_dialog
    assert run_jobs(queue) == 2
    agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert not Dataset.objects.filter(task=task).exclude(status="done").exists()
    assert broken() == []


def test_a_step_needs_no_log_where_its_task_has_none_and_scouts_come_after_it() -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters(preproSpec=SPEC, log=None, nEvents="HOW_MANY", skipScout=None, nScouts=2))
    agents()
    assert job_document(Job.objects.get().id)["outputs"] == []
    step(queue, {"HOW_MANY": 300})
    agents(4)
    task.refresh_from_db()
    assert task.status == "scouting", task.error_dialog
    assert kinds(task) == [("preprocess", "finished"), ("scout", "activated"), ("scout", "activated")]
    assert broken() == []
