"""What jobs get of the inputs and the names that a task asks for: from submission to the command line, and to the end."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from brokerage.models import ComputingQueue, JobSpec
from brokerage.queries.invariants import check
from brokerage.queries.job_document import job_document
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.models import CatalogueDataset, CatalogueFile, Dataset, File, Task

pytestmark = pytest.mark.django_db(transaction=True)

IN: dict[str, Any] = {"type": "template", "param_type": "input"}
FIRST = {**IN, "dataset": "in.data", "value": "--in=${IN/L}"}
OUT = {"type": "template", "param_type": "output", "dataset": "t.OUT", "value": "--out=t.OUT.${SN}.txt"}
SEQUENCE = {"type": "template", "param_type": "pseudo_input", "dataset": "seq_number", "value": "--run=${SEQNUMBER}"}


def number(text: str, offset: int = 0) -> dict[str, Any]:
    return {"type": "template", "param_type": "number", "value": text, "offset": offset}


def task_with(*items: dict[str, Any], **more: Any) -> Task:
    task = submitted(reading("t", "in.data", jobParameters=[FIRST, *items, OUT], **more))
    run_agents()
    return task


def said() -> list[dict[str, str]]:
    """The command line of each job, in the order in which they were made: option -> value."""
    lines = JobSpec.objects.order_by("job_id").values_list("job_parameters", flat=True)
    return [dict(word.lstrip("-").split("=", 1) for word in shlex.split(line)) for line in lines]


def is_done(task: Task, queue: ComputingQueue) -> bool:
    """Run what there is to its end: whether the task is done and nothing is wrong in the database."""
    for _ in range(4):
        run_jobs(queue)
        run_agents()
    task.refresh_from_db()
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []
    return task.status == "done"


def files(prefix: str, *numbers: int) -> str:
    return ",".join(f"{prefix}.{n:06d}" for n in numbers)


def test_pile_up_from_submission_to_the_end() -> None:
    (queue,) = grid("ALPHA")
    for name, n in (("in.data", 3), ("minbias", 4), ("conditions", 2)):
        catalogue_dataset(name, n)
    task = task_with(
        {**IN, "dataset": "minbias", "value": "--low=${LOWBKG/L}", "ratio": 2, "attributes": "repeat"},
        {**IN, "dataset": "conditions", "value": "--db=${DBF/L}", "attributes": "repeat,nosplit"},
        number("--seed=${RNDMSEED} --skip=${SKIPEVENTS} --max=${MAXEVENTS}", 100),
        nFilesPerJob=1,
        nEventsPerInputFile=2000,
        nEventsPerJob=2000,
    )
    assert [(j["in"], j["low"], j["db"], j["seed"], j["skip"], j["max"]) for j in said()] == [
        (files("in.data", 0), files("minbias", 0, 1), files("conditions", 0, 1), "101", "0", "2000"),
        (files("in.data", 1), files("minbias", 2, 3), files("conditions", 0, 1), "102", "0", "2000"),
        (files("in.data", 2), files("minbias", 0, 1), files("conditions", 0, 1), "103", "0", "2000"),
    ]
    assert is_done(task, queue)


def test_a_job_made_again_keeps_its_number_and_seeds_go_to_the_next_job() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 3)
    task = task_with({**SEQUENCE, "offset": 10}, number("--seed=${RNDMSEED} --half=${SEQNUMBER/M[#//2]}"), nFilesPerJob=1)
    assert [(j["in"][-1], j["run"], j["half"]) for j in said()] == [("0", "11", "5"), ("1", "12", "6"), ("2", "13", "6")]
    first, second = take(queue), take(queue)
    end(first)
    end(second, BAD)
    run_agents()
    assert (said()[3]["in"][-1], said()[3]["run"]) == ("1", "12")
    assert is_done(task, queue)


def test_first_events_of_files_and_of_parts_of_files() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = task_with(number("--first=${FIRSTEVENT}", 1000), number("--skip=${SKIPEVENTS} --max=${MAXEVENTS}"),
                     nFilesPerJob=None, nEventsPerJob=6)  # fmt: skip
    assert [(j["in"], j["first"], j["skip"], j["max"]) for j in said()] == [
        (files("in.data", 0), "1001", "0", "6"),
        (files("in.data", 0, 1), "1007", "6", "6"),
        (files("in.data", 1), "1013", "2", "6"),
        (files("in.data", 1), "1019", "8", "2"),
    ]
    assert is_done(task, queue)


def test_wanted_events_end_inside_a_file() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 3)
    task = task_with(number("--max=${MAXEVENTS}"), nFilesPerJob=None, nEventsPerJob=7, nEvents=17)
    assert [j["max"] for j in said()] == ["7", "7", "3"]
    assert is_done(task, queue)


def test_a_secondary_of_a_task_without_input_goes_to_its_records() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("cards", 4)
    items = [{**IN, "dataset": "cards", "value": "--card=${CARD}"}, SEQUENCE, OUT]
    task = submitted(parameters("t", jobParameters=items))
    run_agents()
    assert [(j["card"], j["run"]) for j in said()] == [(files("cards", n), str(n + 1)) for n in range(4)]
    assert is_done(task, queue)


def test_two_datasets_of_one_stream_come_together_to_each_job() -> None:
    (queue,) = grid("ALPHA")
    for name, n in (("in.data", 2), ("low.a", 2), ("low.b", 2)):
        catalogue_dataset(name, n)
    task = task_with({**IN, "dataset": "low.a,low.b", "value": "--low=${LOW/L}"}, nFilesPerJob=1)
    assert [j["low"] for j in said()] == [f"{files('low.a', n)},{files('low.b', n)}" for n in range(2)]
    assert is_done(task, queue)


def test_boundaries_of_names_keep_jobs_to_one_middle_name() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 3)
    for old, new in (("in.data.000000", "x.b.1"), ("in.data.000001", "x.a.2"), ("in.data.000002", "x.b.3")):
        CatalogueFile.objects.filter(lfn=old).update(lfn=new)
    out = {**OUT, "value": "--out=t.${MIDDLENAME}.${SN}.txt"}
    task = submitted(reading("t", "in.data", jobParameters=[FIRST, out, number("--tag=${MIDDLENAME}")],
                             addNthFieldToLFN=2, useFileAsSourceLFN=True, nFilesPerJob=5))  # fmt: skip
    run_agents()
    assert [(j["in"], j["tag"], j["out"]) for j in said()] == [
        ("x.a.2", "a", "t.a.000001.txt"),
        ("x.b.1,x.b.3", "b", "t.b.000002.txt"),
    ]
    assert is_done(task, queue)


def test_lumi_blocks_keep_jobs_apart() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    for i, block in enumerate((7, 6, 7, 7)):
        CatalogueFile.objects.filter(lfn=f"in.data.{i:06d}").update(lumi_block_nr=block)
    task = task_with(respectLB=True, nFilesPerJob=2)
    assert [j["in"] for j in said()] == [files("in.data", 1), files("in.data", 0, 2), files("in.data", 3)]
    assert is_done(task, queue)


def test_jobs_of_each_queue_write_to_a_dataset_of_its_own_and_no_two_files_share_a_name() -> None:
    queues = grid("ALPHA", "BETA")
    task = submitted(parameters("t", instantiateTmplSite=True, jobParameters=[SEQUENCE, OUT]))
    run_agents()
    concrete = {d.site: d for d in Dataset.objects.filter(type="output")}
    assert set(concrete) == {"ALPHA", "BETA"}
    for queue in queues:
        [out] = [o for o in job_document(take(queue).job_id)["outputs"] if o["type"] == "output"]
        assert f"/{concrete[queue.name].dataset_name}/" in out["path"]
    lfns = list(File.objects.filter(type="output").values_list("lfn", flat=True))
    assert len(set(lfns)) == len(lfns) == 4
    assert task.id == concrete["ALPHA"].task_id


def test_a_task_of_template_datasets_is_done_with_the_concrete_ones_closed() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = task_with(instantiateTmplSite=True, nFilesPerJob=1)
    assert is_done(task, queue)
    out = Dataset.objects.get(type="output")
    assert (out.dataset_name, out.site, out.status, out.n_files_finished) == (f"t.OUT.{out.id}", "ALPHA", "done", 4)
    assert CatalogueDataset.objects.get(name=out.dataset_name).state == "closed"
    assert CatalogueFile.objects.filter(dataset__name=out.dataset_name).count() == 4
    assert set(Dataset.objects.filter(type__startswith="tmpl").values_list("status", "n_files")) == {("done", 0)}


def test_secondary_datasets_serve_every_master() -> None:
    (queue,) = grid("ALPHA")
    for name, n in (("in.data", 2), ("more.data", 2), ("low", 4)):
        catalogue_dataset(name, n)
    first = {**FIRST, "dataset": "in.data,more.data"}
    items = [first, {**IN, "dataset": "low", "value": "--low=${LOW}"}, SEQUENCE, OUT]
    task = submitted(reading("t", "in.data", jobParameters=items, nFilesPerJob=1))
    run_agents()
    assert sorted((j["in"], j["low"], j["run"]) for j in said()) == [
        (files("in.data", 0), files("low", 0), "1"),
        (files("in.data", 1), files("low", 1), "2"),
        (files("more.data", 0), files("low", 2), "3"),
        (files("more.data", 1), files("low", 3), "4"),
    ]
    assert is_done(task, queue)


def test_a_master_that_waits_does_not_hold_up_the_others() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2, storage="ELSEWHERE")
    catalogue_dataset("more.data", 2)
    first = {**FIRST, "dataset": "in.data,more.data"}
    task = submitted(reading("t", "in.data", jobParameters=[first, OUT], nFilesPerJob=1))
    run_agents()
    assert sorted(job["in"] for job in said()) == [files("more.data", 0), files("more.data", 1)]
    assert run_jobs(queue) == 2
    run_agents()
    task.refresh_from_db()
    assert task.status == "pending"
    assert task.error_dialog


def test_secondary_files_by_events_of_the_master() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    catalogue_dataset("low", 6)
    CatalogueFile.objects.filter(dataset__name="low").update(n_events=5)
    task = task_with({**IN, "dataset": "low", "value": "--low=${LOW/L}", "eventRatio": 1.5}, nFilesPerJob=1)
    assert [j["low"] for j in said()] == [files("low", 0, 1, 2), files("low", 3, 4, 5)]
    assert is_done(task, queue)


def test_too_few_secondary_files_are_used_again_where_the_task_says_so() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 3)
    catalogue_dataset("low", 2)
    task = task_with({**IN, "dataset": "low", "value": "--low=${LOW}"}, SEQUENCE, reuseSecOnDemand=True, nFilesPerJob=1)
    assert [(j["low"][-1], j["run"]) for j in said()] == [("0", "1"), ("1", "2"), ("0", "3")]
    assert is_done(task, queue)


def test_jobs_that_would_be_short_are_not_made_and_the_task_ends_without_them() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 5)
    task = task_with(nFilesPerJob=2, skipShortOutput=True)
    assert [j["in"] for j in said()] == [files("in.data", 0, 1), files("in.data", 2, 3)]
    assert not is_done(task, queue)
    assert task.status == "finished"


def test_a_boundary_that_is_not_split_is_one_job() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 5)
    for i, boundary in enumerate((1, 2, 1, 3, 1)):
        CatalogueFile.objects.filter(lfn=f"in.data.{i:06d}").update(boundary_id=boundary)
    task = task_with(groupBoundaryID=4, nFilesPerJob=None)
    assert [j["in"] for j in said()] == [files("in.data", 0, 2, 4), files("in.data", 1), files("in.data", 3)]
    assert is_done(task, queue)


def test_even_pieces_of_each_file() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = task_with(number("--skip=${SKIPEVENTS} --max=${MAXEVENTS}"), nFilesPerJob=None, tgtNumEventsPerJob=4)
    assert [(j["in"][-1], j["skip"], j["max"]) for j in said()] == [
        (n, skip, most) for n in "01" for skip, most in (("0", "4"), ("4", "4"), ("8", "2"))
    ]
    assert is_done(task, queue)


def test_fewer_numbers_than_jobs_make_fewer_jobs_and_the_task_says_why() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 3)
    task = task_with({**SEQUENCE, "num_records": 2}, nFilesPerJob=1)
    assert [j["run"] for j in said()] == ["1", "2"]
    task.refresh_from_db()
    assert "pseudo_seq_number" in task.error_dialog


def test_jobs_whose_command_line_no_system_would_start_are_not_made_and_the_task_says_why() -> None:
    grid("ALPHA")
    name = "in." + "x" * 230
    catalogue_dataset(name, 600)
    task = submitted(reading("t", name, nFilesPerJob=600))
    run_agents()
    task.refresh_from_db()
    assert not JobSpec.objects.exists()
    assert task.status == "pending"
    assert task.error_dialog.startswith("an argument of the command line has 144")
    assert "nMaxFilesPerJob" in task.error_dialog
