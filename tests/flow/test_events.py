"""Jobs that share files by events, and that read secondary datasets beside them: agents, brokerage and settlement together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from brokerage.ledger.lease import Lease
from brokerage.models import ComputingQueue, Job, JobInput, JobRetryHistory, JobSpec
from brokerage.queries.invariants import look
from brokerage.queries.job_document import job_document
from brokerage.rules.dispatch.settlement import Report
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, let_confirm, mark_storages, run_agents, run_jobs, try_take
from tests.flow.test_bad_inputs import PRODUCTION, with_files_on_disk
from workqueues.ledger.commands import command
from workqueues.models import Dataset, EventRange, File, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> ComputingQueue:
    return grid("ALPHA")[0]


def faults() -> list[str]:
    return [f"{found.invariant.name}: {example}" for found in look() for example in found.examples]


def by_events(events: int, **more: Any) -> Task:
    """A task whose jobs process so many events of the files of in.data."""
    return submitted(reading("cut", "in.data", nFilesPerJob=None, nEventsPerJob=events, **more))


def spans(**of: Any) -> list[tuple[str, int | None, int | None]]:
    """LFN, first and last event of ranges, in the order in which they were made."""
    found = EventRange.objects.filter(**of).order_by("id")
    return list(found.values_list("file__lfn", "def_min_event_id", "def_max_event_id"))


def states() -> list[str]:
    return list(File.objects.filter(type="input").order_by("id").values_list("status", flat=True))


def all_taken(queue: ComputingQueue) -> list[Lease]:
    """Every job that waits, in the hands of a pilot."""
    taken = []
    while (leased := try_take(queue)) is not None:
        taken.append(leased)
    return taken


def test_jobs_of_so_many_events_share_files_and_the_task_ends_done(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 3)
    task = by_events(15)
    run_agents()
    assert [spans(job_id=job) for job in Job.objects.order_by("id").values_list("id", flat=True)] == [
        [("in.data.000000", 0, 9), ("in.data.000001", 0, 4)],
        [("in.data.000001", 5, 9), ("in.data.000002", 0, 9)],
    ]
    assert list(JobSpec.objects.order_by("job_id").values_list("n_events", "n_input_files")) == [(15, 2), (15, 2)]
    assert states() == ["running"] * 3
    assert faults() == []
    assert run_jobs(queue) == 2
    run_agents()
    task.refresh_from_db()
    assert (task.status, states()) == ("done", ["finished"] * 3)
    assert Dataset.objects.get(task_id=task.id, type="input").n_events_used == 30
    assert faults() == []


def test_a_failed_job_gives_only_its_own_events_back(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 2)
    task = by_events(5)
    run_agents()
    jobs = all_taken(queue)
    assert len(jobs) == 4
    end(jobs[1], BAD)
    for leased in (jobs[0], jobs[2], jobs[3]):
        end(leased)
    assert states() == ["partial", "finished"]
    assert faults() == []
    run_agents()
    again = Job.objects.latest("id")
    assert spans(job_id=again.id) == [("in.data.000000", 5, 9)]
    assert (again.attempt_nr, EventRange.objects.get(job_id=again.id).attempt_nr) == (2, 2)
    assert list(JobRetryHistory.objects.values_list("old_job_id", "new_job_id")) == [(jobs[1].job_id, again.id)]
    assert run_jobs(queue) == 1
    run_agents()
    task.refresh_from_db()
    assert (task.status, states()) == ("done", ["finished", "finished"])
    assert faults() == []


def test_events_that_fail_for_good_leave_the_others_to_a_task_that_is_finished_not_done(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 1)
    task = by_events(5, maxAttempt=1)
    run_agents()
    good, bad = all_taken(queue)
    end(bad, BAD)
    end(good)
    run_agents()
    task.refresh_from_db()
    assert (task.status, states()) == ("finished", ["failed"])
    assert task.error_dialog == "no file was processed whole, but 5 events of 1 file; 1 was given up"
    command(task.id, "retry", "user:ada")
    run_agents()
    assert run_jobs(queue) == 1
    run_agents()
    task.refresh_from_db()
    assert (task.status, states()) == ("done", ["finished"])
    assert faults() == []


def test_a_kill_ends_the_ranges_of_the_jobs_with_them(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 2)
    task = by_events(5)
    run_agents()
    end(all_taken(queue)[0])
    command(task.id, "kill", "user:ada")
    run_agents()
    for job in Job.objects.filter(ended_at=None):
        assert job.kill_requested
        end(Lease(job.id, job.epoch, 1, task.id, 60), Report("failed", killed=True))
    run_agents()
    task.refresh_from_db()
    assert task.status == "aborted"
    assert sorted(EventRange.objects.values_list("status", flat=True)) == ["cancelled"] * 3 + ["done"]
    assert states() == ["partial", "ready"]
    assert faults() == []


def test_an_input_that_one_of_its_jobs_cannot_read_is_held_and_used_when_the_catalogue_has_it(tmp_path: Path) -> None:
    (queue,) = grid("ALPHA", path=str(tmp_path))
    with_files_on_disk(tmp_path, 1)
    by_events(5, **PRODUCTION)
    run_agents()
    first, second = all_taken(queue)
    end(first)
    end(second, Report("failed", missing_inputs=["in.data.000000"]))
    assert File.objects.get(type="input").held
    assert faults() == []
    run_agents()
    assert spans(job_id=Job.objects.get(status="activated").id) == [("in.data.000000", 5, 9)]
    assert run_jobs(queue) == 1
    run_agents()
    assert (states(), faults()) == (["finished"], [])


def test_a_file_that_is_lost_while_its_other_jobs_run_leaves_them_alone(queue: ComputingQueue, tmp_path: Path) -> None:
    catalogue_dataset("in.data", 2)
    mark_storages(tmp_path)
    task = by_events(5)
    run_agents()
    jobs = all_taken(queue)
    end(jobs[0], Report("failed", missing_inputs=["in.data.000000"]))
    run_agents()
    let_confirm()
    run_agents()
    assert states() == ["lost", "running"], "the catalogue finds it nowhere"
    for leased in jobs[1:]:
        end(leased)
    run_agents()
    task.refresh_from_db()
    dataset = Dataset.objects.get(task_id=task.id, type="input")
    assert (states(), dataset.n_files, dataset.n_files_missing, dataset.n_events_used) == (["lost", "finished"], 2, 1, 15)
    assert faults() == []


def with_secondary(**more: Any) -> Task:
    """A task that reads each file of in.data beside files of mb.data."""
    params = reading("mixed", "in.data", nFilesPerJob=1)
    second = {"type": "template", "param_type": "input", "dataset": "mb.data", "value": "--mb ${IN2/L}", **more}
    return submitted({**params, "jobParameters": [params["jobParameters"][0], second, params["jobParameters"][1]]})


def second_inputs() -> list[list[str]]:
    """For each job, in order, the files of mb.data that it reads, by number."""
    return [
        [i["lfn"][-1] for i in job_document(job)["inputs"] if i["dataset"] == "mb.data"]
        for job in Job.objects.order_by("id").values_list("id", flat=True)
    ]


def test_each_job_uses_up_files_of_a_secondary_dataset_and_gives_them_back_when_it_fails(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 2)
    catalogue_dataset("mb.data", 5)
    task = with_secondary(ratio=2)
    run_agents()
    assert second_inputs() == [["0", "1"], ["2", "3"]]
    second = Dataset.objects.get(dataset_name="mb.data", task_id=task.id)
    assert (second.n_files_used, second.n_files_finished) == (4, 0)
    assert faults() == []
    bad, good = all_taken(queue)
    end(bad, BAD)
    end(good)
    second.refresh_from_db()
    assert (second.n_files_used, second.n_files_finished) == (2, 2)
    run_agents()
    assert second_inputs()[-1] == ["0", "1"]
    assert run_jobs(queue) == 1
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert faults() == []


def test_a_repeated_dataset_goes_round_and_on_in_the_next_round(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 4)
    catalogue_dataset("mb.data", 3)
    task = with_secondary(attributes="repeat", ratio=2)
    run_agents()
    assert second_inputs() == [["0", "1"], ["0", "2"], ["1", "2"], ["0", "1"]]
    second = Dataset.objects.get(dataset_name="mb.data", task_id=task.id)
    assert (second.n_files_used, second.next_use) == (0, 8)
    assert not JobInput.objects.filter(dataset_id=second.id, tracked=True).exists()
    assert faults() == []
    end(all_taken(queue)[0], BAD)
    run_agents()
    assert second_inputs()[-1] == ["0", "2"]
    assert run_jobs(queue) == 1
    assert faults() == []


def test_every_job_has_all_files_of_a_dataset_that_is_not_split(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 3)
    catalogue_dataset("mb.data", 2)
    task = with_secondary(attributes="nosplit,repeat")
    run_agents()
    assert second_inputs() == [["0", "1"]] * 3
    run_jobs(queue)
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
    assert set(File.objects.filter(dataset__dataset_name="mb.data", type="input").values_list("status", flat=True)) == {"ready"}
    assert faults() == []


def test_a_file_for_many_jobs_that_one_cannot_read_is_left_out_once_the_catalogue_confirms(
    queue: ComputingQueue, tmp_path: Path
) -> None:
    mark_storages(tmp_path)
    catalogue_dataset("in.data", 2)
    catalogue_dataset("mb.data", 3)
    task = with_secondary(attributes="repeat", ratio=2)
    run_agents()
    first, _ = all_taken(queue)
    assert end(first, Report("failed", missing_inputs=["mb.data.000001"])) == "closed"
    second = File.objects.filter(dataset__dataset_name="mb.data", dataset__task_id=task.id).order_by("id")
    assert [f.held for f in second] == ["", "reported missing at ALPHA", ""]
    assert faults() == []
    run_agents()
    let_confirm()
    run_agents()
    assert list(second.values_list("status", flat=True)) == ["ready", "lost", "ready"]
    assert faults() == []
