"""How much work a job gets, from the task's parameters to the jobs: by the queue that takes it, by events, with files beside."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db.models import F, Sum

from brokerage.models import ComputingQueue, Job, JobInput, JobRetryHistory, JobSpec
from brokerage.queries.usable_input import peek
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.models import CatalogueFile, Dataset, EventRange, File, FileChange, Replica, Task

pytestmark = pytest.mark.django_db

GB = 10**9


def specs(task: Task) -> list[JobSpec]:
    """The jobs of a task, as they were made."""
    ids = Job.objects.filter(task_id=task.id).values_list("id", flat=True)
    return list(JobSpec.objects.filter(job_id__in=list(ids)).order_by("job_id"))


def files_of(task: Task) -> Counter[int]:
    """Job -> how many files of the master it reads."""
    masters = list(Dataset.objects.filter(task_id=task.id, type="input", master=None).values_list("id", flat=True))
    return Counter(JobInput.objects.filter(dataset_id__in=masters).values_list("job_id", flat=True))


def item(kind: str, dataset: str, value: str, **more: Any) -> dict[str, Any]:
    return {"type": "template", "param_type": kind, "dataset": dataset, "value": value, **more}


def overlaid(n_signal: int, n_background: int, **more: Any) -> Task:
    """A task that reads so many signal files, each with a background file beside it that is used once."""
    catalogue_dataset("signal", n_signal)
    catalogue_dataset("background", n_background)
    items = [
        item("input", "signal", "--sig ${IN/L}"),
        item("input", "background", "--bkg ${BKG/L}"),
        item("output", "t1.OUT", "--out=t1.OUT.${SN}.txt"),
    ]
    return submitted(reading("t1", "signal", jobParameters=items, **more))


def everywhere(dataset: str, *storages: str) -> None:
    """Copies of all files of a dataset."""
    files = CatalogueFile.objects.filter(dataset__name=dataset)
    Replica.objects.bulk_create((Replica(file=f, storage=s) for f in files for s in storages), ignore_conflicts=True)


def test_a_queue_with_more_scratch_disk_gets_larger_jobs() -> None:
    small, large = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(id=small.id).update(maxwdir=5_000)
    ComputingQueue.objects.filter(id=large.id).update(maxwdir=20_000)
    catalogue_dataset("in.data", 40, size=GB)
    everywhere("in.data", "ALPHA_DISK", "BETA_DISK")
    task = submitted(reading("t1", "in.data", nFilesPerJob=None))
    run_agents(3)
    sizes = files_of(task)
    assert sum(sizes.values()) == 40
    by_queue = {
        queue.name: {
            sizes[id_] for id_ in Job.objects.filter(task_id=task.id, computing_queue=queue).values_list("id", flat=True)
        }
        for queue in (small, large)
    }
    # Input, 0.5 GB for the output and no work area are less than the disk of a slot.
    assert max(by_queue["ALPHA"]) == 4
    assert max(by_queue["BETA"]) == 19


def test_no_job_takes_longer_than_its_queue_allows() -> None:
    (alpha,) = grid("ALPHA")  # 10 HS06 a core, one core
    ComputingQueue.objects.filter(id=alpha.id).update(maxtime=3_000)
    catalogue_dataset("in.data", 20)  # 10 events a file
    more = {"cpuTime": 200, "cpuTimeUnit": "HS06sPerEvent", "cpuEfficiency": 100, "baseWalltime": 600}
    task = submitted(reading("t1", "in.data", nFilesPerJob=None, **more))
    run_agents(3)
    # 600 s and 20 s an event: less than 120 events, so 11 files.
    assert sorted(files_of(task).values()) == [9, 11]
    assert all(spec.walltime_s <= 3_000 for spec in specs(task))


def test_a_task_may_want_shorter_jobs_than_the_queue_allows() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 20)
    more = {"cpuTime": 400, "cpuTimeUnit": "HS06sPerEvent", "cpuEfficiency": 100, "baseWalltime": 0, "maxWalltime": 1}
    task = submitted(reading("t1", "in.data", nFilesPerJob=None, **more))
    run_agents(3)
    assert sorted(files_of(task).values()) == [4, 8, 8]  # 400 s a file, less than an hour


def test_events_are_cut_across_files_and_those_of_a_failed_job_are_cut_anew() -> None:
    (alpha,) = grid("ALPHA")
    catalogue_dataset("in.data", 3)  # 10 events a file
    items = [
        item("input", "in.data", "--in ${IN/L} --skip ${SKIPEVENTS} --max ${MAXEVENTS}"),
        item("output", "t1.OUT", "--out=t1.OUT.${SN}.txt"),
    ]
    task = submitted(reading("t1", "in.data", nFilesPerJob=None, nEventsPerJob=8, jobParameters=items))
    run_agents(3)
    texts = [spec.job_parameters.rpartition(" --out")[0] for spec in specs(task)]
    assert texts == [
        "--in in.data.000000 --skip 0 --max 8",
        "--in in.data.000000,in.data.000001 --skip 8 --max 8",
        "--in in.data.000001,in.data.000002 --skip 6 --max 8",
        "--in in.data.000002 --skip 4 --max 6",
    ]
    end(take(alpha), BAD)
    run_jobs(alpha)
    run_agents(3)
    assert {spec.n_events for spec in specs(task)[4:]} == {8}
    run_jobs(alpha)
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "done"
    done = EventRange.objects.filter(task_id=task.id, status="done").aggregate(
        n=Sum(F("def_max_event_id") - F("def_min_event_id") + 1)
    )
    assert done == {"n": 30}
    assert set(File.objects.filter(task_id=task.id, type="input").values_list("status", flat=True)) == {"finished"}


def test_files_of_very_many_events_are_cut_into_small_jobs_a_few_at_a_time() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 2)
    CatalogueFile.objects.update(n_events=300_000)
    task = submitted(reading("t1", "in.data", nFilesPerJob=None, nEventsPerJob=1))
    run_agents(1, ["refine", "feed", "assign", "generate"])
    task.refresh_from_db()
    made = Job.objects.filter(task_id=task.id).count()
    assert made >= 20
    assert Counter(spec.n_events for spec in specs(task)) == {1: made}
    there = peek(task, Dataset.objects.get(task_id=task.id, type="input"), 100)
    assert len(there.smallest()) <= 10_000  # not the 600000 that there are


def test_a_file_without_events_is_left_out_where_events_are_cut() -> None:
    (alpha,) = grid("ALPHA")
    catalogue_dataset("in.data", 3)
    CatalogueFile.objects.filter(lfn="in.data.000001").update(n_events=0)
    task = submitted(reading("t1", "in.data", nFilesPerJob=None, nEventsPerJob=20))
    run_agents(3)
    assert [spec.job_parameters.split(" --out")[0] for spec in specs(task)] == ["--in in.data.000000,in.data.000002"]
    run_jobs(alpha)
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "done"


def test_an_input_whose_files_are_all_without_events_says_so() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 2)
    CatalogueFile.objects.update(n_events=0)
    task = submitted(reading("t1", "in.data", nFilesPerJob=None, nEventsPerJob=20))
    run_agents(3)
    task.refresh_from_db()
    assert (task.status, task.error_dialog) == ("broken", "the 2 files of the input have no events")


def test_an_input_of_short_files_only_says_what_left_them_out() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 3)
    task = submitted(reading("t1", "in.data", nFilesPerJob=None, nEventsPerJob=20, skipShortInput=True))
    run_agents(3)
    task.refresh_from_db()
    assert (task.status, "20 events or more, and skipShortInput" in task.error_dialog) == ("broken", True)


def test_jobs_that_would_be_too_short_are_left_out_with_the_reason() -> None:
    (alpha,) = grid("ALPHA")
    catalogue_dataset("in.data", 3)
    task = submitted(reading("t1", "in.data", nFilesPerJob=None, nEventsPerJob=8, skipShortOutput=True))
    run_agents(3)
    assert [spec.n_events for spec in specs(task)] == [8, 8, 8]
    assert "skipShortOutput" in FileChange.objects.get(task_id=task.id).why
    run_jobs(alpha)
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "finished"  # not all of its input was used


def test_pile_up_takes_files_beside_the_signal_round_and_round() -> None:
    (alpha,) = grid("ALPHA")
    for name, n in (("signal", 4), ("low", 3), ("conditions", 2)):
        catalogue_dataset(name, n)
    items = [
        item("input", "signal", "--sig ${IN}"),
        item("input", "low", "--low ${LOWBKG/L}", ratio=2, attributes="repeat"),
        item("input", "conditions", "--db ${DBF/L}", attributes="repeat,nosplit"),
        item("output", "t1.OUT", "--out=t1.OUT.${SN}.txt"),
    ]
    task = submitted(reading("t1", "signal", nFilesPerJob=1, jobParameters=items))
    run_agents(3)
    lows = [spec.job_parameters.split("--low ")[1].split(" ")[0] for spec in specs(task)]
    assert lows == ["low.000000,low.000001", "low.000000,low.000002", "low.000001,low.000002", "low.000000,low.000001"]
    assert all("--db conditions.000000,conditions.000001 " in spec.job_parameters for spec in specs(task))
    assert run_jobs(alpha) == 4
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "done"


def test_a_secondary_dataset_that_runs_out_holds_the_rest_with_the_reason() -> None:
    (alpha,) = grid("ALPHA")
    task = overlaid(4, 3, nFilesPerJob=1)
    run_agents(3)
    assert len(specs(task)) == 3
    task.refresh_from_db()
    assert "background" in task.error_dialog
    assert run_jobs(alpha) == 3


def test_a_job_is_not_cut_short_for_background_files_that_were_only_not_taken_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workqueues.ledger.secondaries.MOST_FILES", 3)
    grid("ALPHA")
    task = overlaid(6, 6, nFilesPerJob=None, nMaxFilesPerJob=2)
    run_agents(5)
    assert [spec.n_input_files for spec in specs(task)] == [4, 4, 4]


def test_a_sequence_beside_files_numbers_the_jobs_and_a_retry_keeps_its_number() -> None:
    (alpha,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    items = [
        item("input", "in.data", "--in ${IN}"),
        item("pseudo_input", "seq_number", "--run ${SEQNUMBER}", offset=70),
        item("output", "t1.OUT", "--out=t1.OUT.${SN}.txt"),
    ]
    task = submitted(reading("t1", "in.data", nFilesPerJob=1, jobParameters=items))
    run_agents(3)
    assert [spec.job_parameters.split("--run ")[1].split(" ")[0] for spec in specs(task)] == ["71", "72"]
    end(take(alpha), BAD)
    run_agents(2)
    assert [spec.job_parameters.split("--run ")[1].split(" ")[0] for spec in specs(task)] == ["71", "72", "71"]


def test_a_job_follows_those_that_had_its_master_files_not_those_that_had_its_background() -> None:
    (alpha,) = grid("ALPHA")
    task = overlaid(1, 1, nFilesPerJob=1)
    run_agents(3)
    leased = take(alpha)
    end(leased, BAD)
    File.objects.filter(task_id=task.id, lfn="signal.000000").update(job_id=None)
    run_agents(2)
    assert Job.objects.filter(task_id=task.id).count() == 2
    assert not JobRetryHistory.objects.filter(task_id=task.id).exists()
