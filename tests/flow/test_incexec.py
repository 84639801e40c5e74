"""Tasks that have ended are run again on what is new in their input, or with other parameters; nothing is done twice."""

from __future__ import annotations

from typing import Any

import pytest

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel.machine import NotAllowed
from broker_site.foundation.kernel.verdict import Problem
from brokerage.models import ComputingQueue, Job
from brokerage.queries.job_document import job_document
from tests.builders import catalogue_dataset, grid, more_files, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.commands import command
from workqueues.ledger.incexec import carry_out_incexec
from workqueues.ledger.moves import Stale
from workqueues.models import CatalogueDataset, Dataset, DatasetChange, File, Task, TaskChange

pytestmark = pytest.mark.django_db


def ended_task(queue: ComputingQueue, files: int = 4, bad: int = 0, **more: Any) -> Task:
    """A task of two files a job that has ended, so many jobs of it badly."""
    catalogue_dataset("in.data", files)
    task = submitted(reading("t", "in.data", maxAttempt=1, **more))
    run_agents()
    for _ in range(bad):
        end(take(queue), BAD)
    run_jobs(queue)
    run_agents()
    return task


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def used() -> dict[str, str]:
    """The inputs of all tasks and what became of them."""
    return dict(File.objects.filter(type="input").values_list("lfn", "status"))


def outputs() -> list[str]:
    return sorted(File.objects.filter(type="output", status="finished").values_list("lfn", flat=True))


def test_new_files_of_the_input_are_added_and_nothing_is_done_twice() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue)
    assert status(task) == "done"
    more_files("in.data", "in.data.000000a", "in.data.9")
    command(task.id, "incexec", "user:ada", "incexec: more data")
    assert status(task) == "toincexec"
    run_agents()
    assert status(task) == "running"
    assert run_jobs(queue) == 1
    run_agents()
    assert (status(task), task.attempt_nr) == ("done", 1)
    assert used() == {f"in.data.00000{i}": "finished" for i in range(4)} | {
        "in.data.000000a": "finished",
        "in.data.9": "finished",
    }
    assert outputs() == [f"t.OUT.00000{i}.txt" for i in (1, 2, 3)], "numbers go on"
    assert Dataset.objects.get(type="output").n_files_finished == 3
    assert File.objects.filter(type="input").values("lfn").distinct().count() == File.objects.filter(type="input").count()
    who = TaskChange.objects.get(task_id=task.id, new="toincexec")
    assert (who.who, who.why, who.old) == ("user:ada", "incexec: more data", "done")


def test_files_given_up_have_more_tries_and_the_task_ends_done() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, bad=1)
    assert status(task) == "finished"
    more_files("in.data", "in.data.000009")
    command(task.id, "incexec", "user:ada")
    run_agents()
    assert run_jobs(queue) == 2
    run_agents()
    assert status(task) == "done"
    assert set(used().values()) == {"finished"}
    assert sorted(File.objects.filter(type="input").values_list("attempt_nr", flat=True)) == [1, 1, 1, 2, 2]


def test_with_nothing_new_it_ends_as_it_was() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue)
    n_jobs = Job.objects.count()
    command(task.id, "reload_input", "user:ada")
    run_agents(4)
    assert status(task) == "done"
    assert Job.objects.count() == n_jobs
    assert not Dataset.objects.exclude(status="done").exists()


def test_given_twice_it_is_done_once() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue)
    command(task.id, "incexec", "user:ada")
    epoch = Task.objects.get(id=task.id).epoch
    command(task.id, "incexec", "user:ada")
    assert Task.objects.get(id=task.id).epoch == epoch
    run_agents(4)
    assert (status(task), task.attempt_nr) == ("done", 1)


def test_a_task_that_has_not_ended_refuses_it_and_nothing_changes() -> None:
    task = submitted(parameters())
    for _ in range(2):
        with pytest.raises(NotAllowed):
            command(task.id, "incexec", "user:ada", changes={"ramCount": 900})
        run_agents(names=["refine"])
    assert Task.objects.get(id=task.id).params.task_params == parameters()
    assert (status(task), task.ram_count) == ("defined", 500)


def test_an_aborted_task_that_was_never_refined_is_refined() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data"))
    command(task.id, "kill", "user:ada")
    run_agents(names=["command"])
    assert status(task) == "aborted"
    command(task.id, "incexec", "user:ada")
    run_agents()
    assert run_jobs(queue) == 1
    run_agents()
    assert status(task) == "done"


def test_events_of_new_files_are_numbered_behind_those_of_all_others() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, files=2)
    more_files("in.data", "in.data.0", events=7)
    command(task.id, "incexec", "user:ada")
    run_agents()
    assert dict(File.objects.filter(type="input").values_list("lfn", "first_event")) == {
        "in.data.000000": 1, "in.data.000001": 11, "in.data.0": 21,
    }  # fmt: skip


def test_more_files_are_used_where_more_are_asked_for_and_the_first_stay_the_first() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, files=6, nFiles=2)
    assert (status(task), len(used())) == ("done", 2)
    more_files("in.data", "in.data.0")
    command(task.id, "incexec", "user:ada", "incexec: the rest", changes={"nFiles": 5, "nFilesPerJob": 3})
    run_agents()
    assert run_jobs(queue) == 1
    run_agents()
    assert (status(task), len(used())) == ("done", 5)
    assert Task.objects.get(id=task.id).params.task_params["nFiles"] == 5
    assert "NF=3" in task.split_rule
    move = TaskChange.objects.get(task_id=task.id, new="toincexec")
    assert (move.who, move.why) == ("user:ada", "incexec: the rest; changed: nFiles 5 (was 2), nFilesPerJob 3 (was 2)")
    command(task.id, "incexec", "user:ada", changes={"nFiles": None})
    run_agents()
    run_jobs(queue)
    run_agents()
    assert (status(task), len(used())) == ("done", 7)
    assert "nFiles" not in Task.objects.get(id=task.id).params.task_params


def test_more_events_without_input_are_more_jobs_with_numbers_of_their_own() -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters())
    run_agents()
    assert run_jobs(queue) == 4
    run_agents()
    assert status(task) == "done"
    command(task.id, "incexec", "user:ada", changes={"nEvents": 60})
    run_agents()
    assert run_jobs(queue) == 2
    run_agents()
    assert status(task) == "done"
    seeds = list(File.objects.filter(type="random_seed").values_list("first_event", "lfn"))
    assert len(set(seeds)) == 6
    assert len(outputs()) == 6


def test_a_retry_with_changes_runs_what_was_given_up_with_them() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, bad=2)
    assert status(task) == "failed"
    command(task.id, "retry", "user:ada", "retry", changes={"nFilesPerJob": 1, "ramCount": 1500, "site": "ALPHA"})
    assert (status(task), task.command, task.ram_count, task.site) == ("toincexec", "retry", 1500, "ALPHA")
    run_agents()
    assert run_jobs(queue) == 4
    run_agents()
    assert status(task) == "done"


def test_a_retry_with_what_is_so_already_is_a_plain_retry() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, bad=1)
    command(task.id, "retry", "user:ada", changes={"nFilesPerJob": 2})
    assert status(task) == "toretry"


@pytest.mark.parametrize("long", ["", " --padding" * 120])
def test_new_sources_are_those_of_new_jobs_only(long: str) -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    params = reading("t", "in.data", nFilesPerJob=1, maxAttempt=1, sourceURL="https://cache.example.org")
    items = [{"type": "constant", "value": value} for value in (f"--sourceURL ${{SURL}}{long}", "-a one.tgz")]
    task = submitted({**params, "jobParameters": [*items, *params["jobParameters"]]})
    run_agents()
    end(take(queue), BAD)
    run_jobs(queue)
    run_agents(3)
    command(task.id, "incexec", "user:ada", changes={"fixedSandbox": "two.tgz", "sourceURL": "https://other.example.org"})
    run_agents(3)
    lines = [job_document(id_)["parameters"] for id_ in Job.objects.order_by("id").values_list("id", flat=True)]
    assert [line.startswith(f"--sourceURL https://cache.example.org{long} -a one.tgz --in") for line in lines[:2]] == [True] * 2
    assert [line.startswith(f"--sourceURL https://other.example.org{long} -a two.tgz --in") for line in lines[2:]] == [True]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"nEventsPerJob": 5}, "changes.nEventsPerJob", "unchangeable"),
    ({"jobParameters": []}, "changes.jobParameters", "unchangeable"),
    ({"nFilesPerJobs": 5}, "changes.nFilesPerJobs", "unchangeable"),
    ({"nFilesPerJob": 0}, "changes.nFilesPerJob", "range"),
    ({"nFilesPerJob": "many"}, "changes.nFilesPerJob", "type"),
    ({"nFiles": 3, "taskName": "u"}, "changes.taskName", "unchangeable"),
    ({"nFiles": 3}, "changes.nFiles", "range"),
    ({"nEvents": 39}, "changes.nEvents", "range"),
    ({"useZipToPin": True}, "changes.useZipToPin", "not_supported_yet"),
    ({"dsForIN9": "other"}, "changes.dsForIN9", "exists"),
    ({"nFilesPerJob": 5, "nMaxFilesPerJob": 3}, "changes.nFilesPerJob", "contradiction"),
]


def test_what_may_not_change_is_refused_with_field_and_rule_and_nothing_changes(subtests: pytest.Subtests) -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, bad=1)
    before = Task.objects.get(id=task.id)
    for changes, field, rule in REFUSED:
        with subtests.test(changes=changes):
            with pytest.raises(Refused) as refused:
                command(task.id, "retry", "user:ada", changes=changes)
            assert refused.value.status == 422
            assert (field, rule) in {(p.field, p.rule) for p in refused.value.errors if isinstance(p, Problem)}
            after = Task.objects.get(id=task.id)
            assert (after.status, after.epoch, after.split_rule) == ("finished", before.epoch, before.split_rule)
            assert after.params.task_params == before.params.task_params


def test_scouts_that_are_over_and_what_they_measured_stay() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, bad=1)
    Task.objects.filter(id=task.id).update(split_rule="NF=2,US=3,NG=4", cpu_time=77)
    command(task.id, "incexec", "user:ada", changes={"nFilesPerJob": None, "maxCoreCount": 8})
    task.refresh_from_db()
    assert (task.split_rule, task.cpu_time) == ("US=3,NG=4,CC=8", 77)


def test_further_datasets_become_inputs_and_leave_again() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue)
    catalogue_dataset("more.data", 2)
    command(task.id, "incexec", "user:ada", changes={"dsForIN": "more.data"})
    run_agents()
    assert run_jobs(queue) == 1
    run_agents()
    assert (status(task), len(used())) == ("done", 6)
    assert File.objects.get(lfn="more.data.000000").first_event == 41
    catalogue_dataset("other.data", 2)
    command(task.id, "incexec", "user:ada", changes={"dsForIN": "other.data"})
    run_agents()
    end(take(queue), BAD)
    run_agents()
    assert status(task) == "finished"
    command(task.id, "incexec", "user:ada", changes={"dsForIN": None})
    run_agents(4)
    assert status(task) == "done", "what is no input any more does not count"
    assert Dataset.objects.get(dataset_name="other.data").excluded
    command(task.id, "incexec", "user:ada", changes={"dsForIN": "other.data"})
    run_agents()
    assert not Dataset.objects.get(dataset_name="other.data").excluded


def test_an_input_that_cannot_be_read_any_more_leaves_the_task_pending_and_not_broken() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue)
    CatalogueDataset.objects.filter(name="in.data").delete()
    command(task.id, "incexec", "user:ada")
    run_agents()
    assert (status(task), "no dataset in.data" in task.error_dialog) == ("pending", True)
    command(task.id, "finish", "user:ada")
    run_agents(4)
    assert status(task) == "done"


def test_it_gets_the_priority_that_its_parameters_ask_for_or_keeps_its_own() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue)
    Task.objects.filter(id=task.id).update(current_priority=900)
    command(task.id, "incexec", "user:ada", "keep incexec")
    run_agents(4)
    assert (status(task), task.current_priority) == ("done", 900)
    command(task.id, "incexec", "user:ada", changes={"currentPriority": 700})
    run_agents(4)
    assert (status(task), task.current_priority, task.task_priority) == ("done", 700, 500)
    command(task.id, "incexec", "user:ada", changes={"currentPriority": None})
    run_agents(4)
    assert (status(task), task.current_priority) == ("done", 500)


def test_memory_raised_for_single_files_begins_anew() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, bad=1)
    File.objects.filter(type="input").update(ram_count=4000)
    command(task.id, "incexec", "user:ada", changes={"ramCount": 1000})
    run_agents(names=["command"])
    assert set(File.objects.filter(status="ready").values_list("ram_count", flat=True)) == {0}


def test_every_move_of_an_input_dataset_says_why() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue)
    command(task.id, "incexec", "user:ada")
    run_agents(4)
    master = Dataset.objects.get(type="input")
    moves = list(DatasetChange.objects.filter(dataset_id=master.id).order_by("id").values_list("new", "why"))
    assert [new for new, _ in moves] == ["defined", "ready", "done", "toupdate", "ready", "done"]
    assert ("toupdate", "its files are to be read again") in moves
    assert status(task) == "done"


def test_a_production_task_keeps_its_place() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, prodSourceLabel="managed")
    assert status(task) == "done"
    more_files("in.data", "in.data.9")
    command(task.id, "incexec", "user:ada")
    run_agents()
    assert run_jobs(queue) == 1
    run_agents()
    assert status(task) == "done"
    assert TaskChange.objects.filter(task_id=task.id, new="assigning").count() == 1


def test_jobs_of_an_exhausted_task_go_on_while_its_input_is_read_again() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data"))
    run_agents()
    held = take(queue)
    Task.objects.filter(id=task.id).update(status="exhausted", old_status="running")
    more_files("in.data", "in.data.9")
    command(task.id, "incexec", "user:ada", changes={"nFilesPerJob": 1})
    run_agents(1, names=["command", "refine"])
    end(held)
    run_agents()
    run_jobs(queue)
    run_agents()
    assert status(task) == "done"
    assert Job.objects.filter(status="finished").count() == 3, "two that were there, and one for the new file"
    assert set(File.objects.filter(type="input").values_list("status", "attempt_nr")) == {("finished", 1)}


def test_two_agents_at_once_carry_it_out_once() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue)
    command(task.id, "incexec", "user:ada")
    assert len(claim_tasks("command:first", 60, ["toincexec"], 5)) == 1
    run_agents(1, names=["command"])
    assert status(task) == "toincexec", "somebody has it"
    carry_out_incexec("command:first", task.id, 3, "agent:command")
    with pytest.raises(Stale):
        carry_out_incexec("command:first", task.id, 3, "agent:command")
    assert (status(task), task.attempt_nr) == ("rerefine", 1)


def test_a_parent_that_ended_badly_must_be_retried_first() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 2)
    parent = submitted(reading("a", "in.data"))
    child = submitted(reading("b", "a.OUT", parentTaskName="a"))
    run_agents()
    command(parent.id, "kill", "user:ada")
    run_agents(3)
    assert (status(parent), status(child)) == ("aborted", "aborted")
    command(child.id, "incexec", "user:ada")
    run_agents(1)
    assert status(child) == "aborted"
    assert child.error_dialog == f"not retried: its parent, task {parent.id}, is aborted; retry that first"


def test_a_dataset_that_somebody_else_has_by_now_leaves_the_task_as_it_was() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue)
    CatalogueDataset.objects.filter(name="t.OUT").update(owner="eve")
    command(task.id, "incexec", "user:ada")
    run_agents(1)
    assert (status(task), "belongs to another user" in task.error_dialog) == ("done", True)
    assert set(Dataset.objects.values_list("status", flat=True)) == {"done"}


def test_what_was_recorded_of_a_merge_holds_when_it_goes_on() -> None:
    (queue,) = grid("ALPHA")
    task = ended_task(queue, mergeOutput=True, nFilesPerMergeJob=2)
    for _ in range(3):
        run_agents()
        run_jobs(queue)
    run_agents()
    assert status(task) == "done"
    before = outputs()
    more_files("in.data", "in.data.8", "in.data.9")
    command(task.id, "incexec", "user:ada")
    for _ in range(4):
        run_agents()
        run_jobs(queue)
    run_agents()
    assert status(task) == "done"
    assert set(outputs()) > set(before)
