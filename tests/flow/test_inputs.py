"""What a task asks of its inputs, from submission to filled datasets."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from brokerage.queries.job_document import job_document
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted, what_every_broker_begins_with
from tests.flow.steps import run_agents, take
from workqueues.models import CatalogueDataset, CatalogueFile, Dataset, File, OutputTemplate, Task

pytestmark = pytest.mark.django_db

FEED = ("refine", "feed")
IN: dict[str, Any] = {"type": "template", "param_type": "input"}
OUT = {"type": "template", "param_type": "output", "dataset": "t.OUT", "value": "--out=t.OUT.${SN}.txt"}
FIRST = {**IN, "dataset": "in.data", "value": "--in ${IN/L}"}
SEQUENCE = {"type": "template", "param_type": "pseudo_input", "dataset": "seq_number", "value": "--run ${SEQNUMBER}"}


def fed(*items: dict[str, Any], **more: Any) -> Task:
    """A task that reads in.data, and these, refined and fed."""
    what_every_broker_begins_with()
    task = submitted(reading("t", "in.data", jobParameters=[FIRST, *items, OUT], **more))
    run_agents(1, FEED)
    task.refresh_from_db()
    return task


def files(dataset: str) -> list[File]:
    return list(File.objects.filter(dataset__dataset_name=dataset).order_by("id"))


def test_pile_up_is_refined_to_its_rows_and_fed() -> None:
    catalogue_dataset("in.data", 3)
    catalogue_dataset("minbias", 4)
    catalogue_dataset("conditions", 2)
    task = fed(
        {**IN, "dataset": "minbias", "value": "--low ${LOWBKG/L}", "ratio": 2, "attributes": "repeat"},
        {**IN, "dataset": "conditions", "value": "--db ${DBF}", "attributes": "repeat,nosplit"},
        {"type": "template", "param_type": "number", "value": "--seed ${RNDMSEED} --skip ${SKIPEVENTS}", "offset": 100},
        nFilesPerJob=1,
        nEventsPerInputFile=2000,
        nEventsPerJob=2000,
    )
    assert task.status == "ready"
    assert task.split_rule == "NF=1,EI=2000,RS=100,US=1"
    master = Dataset.objects.get(dataset_name="in.data")
    rows = (
        Dataset.objects.filter(type="input").order_by("id").values_list("dataset_name", "attributes", "stream_name", "master_id")
    )
    assert list(rows) == [
        ("in.data", "", "IN", None),
        ("minbias", "repeat,ratio=2", "LOWBKG", master.id),
        ("conditions", "repeat,nosplit", "DBF", master.id),
    ]
    assert [(f.n_events, f.max_attempt, f.keep_track) for f in files("in.data")] == [(2000, 3, True)] * 3
    assert [(f.max_attempt, f.keep_track) for f in files("minbias")] == [(None, False)] * 4


def test_a_secondary_dataset_that_is_used_once_is_tracked_and_only_its_master_has_a_limit_of_tries() -> None:
    catalogue_dataset("in.data", 2)
    catalogue_dataset("one.low", 2)
    catalogue_dataset("two.low", 2)
    fed({**IN, "dataset": "one.low,two.low", "value": "--low ${LOW/L}", "nFilesPerJob": 1}, maxAttempt=5)
    assert [(f.max_attempt, f.keep_track) for f in files("in.data")] == [(5, True)] * 2
    assert [(f.max_attempt, f.keep_track) for f in files("one.low") + files("two.low")] == [(None, True)] * 4
    assert set(Dataset.objects.filter(stream_name="LOW").values_list("attributes", flat=True)) == {"np=1"}


def test_secondary_files_are_used_again_where_the_task_says_so() -> None:
    catalogue_dataset("in.data", 2)
    catalogue_dataset("low", 1)
    fed({**IN, "dataset": "low", "value": "--low ${LOW/L}"}, SEQUENCE, reuseSecOnDemand=True)
    assert Dataset.objects.get(dataset_name="low").attributes == "ru"
    assert not files("low")[0].keep_track
    assert all(f.keep_track for f in files("pseudo_seq_number"))


def test_files_for_many_times_are_not_tracked_and_do_not_run_out() -> None:
    catalogue_dataset("in.data", 2)
    catalogue_dataset("low", 1)
    fed({**IN, "dataset": "low", "value": "--low ${LOW/L}", "attributes": "manytime"})
    assert Dataset.objects.get(dataset_name="low").attributes == "manytime,ru"
    assert not files("low")[0].keep_track


def test_an_empty_secondary_dataset_breaks_the_task_and_is_named() -> None:
    catalogue_dataset("in.data", 2)
    catalogue_dataset("low", 0)
    task = fed({**IN, "dataset": "low", "value": "--low ${LOW/L}", "ratio": 2})
    assert (task.status, task.error_dialog) == ("tobroken", "the secondary dataset low has no files")
    Task.objects.all().delete()
    assert fed({**IN, "dataset": "low", "value": "--low ${LOW/L}"}, allowEmptyInput=True).status == "finishing"


def test_a_secondary_dataset_of_a_task_without_input_belongs_to_its_records() -> None:
    catalogue_dataset("cards", 4)
    items = [{**IN, "dataset": "cards", "value": "--card ${CARD}"}, SEQUENCE, OUT]
    submitted(parameters("t", jobParameters=items))
    run_agents(1, FEED)
    master = Dataset.objects.get(type="pseudo_input")
    assert Dataset.objects.get(dataset_name="cards").master_id == master.id
    assert len(files("pseudo_dataset")) == len(files("cards")) == 4


def test_a_sequence_beside_files_has_a_tracked_record_for_every_job_there_may_be() -> None:
    catalogue_dataset("in.data", 3)
    fed({**SEQUENCE, "offset": 10})
    dataset = Dataset.objects.get(dataset_name="pseudo_seq_number")
    assert (dataset.attributes, dataset.stream_name) == ("np=1,of=10", "SEQNUMBER")
    assert dataset.master_id == Dataset.objects.get(dataset_name="in.data").id
    assert [f.lfn for f in files("pseudo_seq_number")] == ["pseudo_000011", "pseudo_000012", "pseudo_000013"]
    assert all(f.keep_track and f.max_attempt is None for f in files("pseudo_seq_number"))


def test_a_sequence_may_say_its_length() -> None:
    catalogue_dataset("in.data", 3)
    fed({**SEQUENCE, "num_records": 2})
    assert len(files("pseudo_seq_number")) == 2


def test_events_are_counted_by_the_task_unless_the_catalogue_is_to_count() -> None:
    catalogue_dataset("in.data", 2)
    CatalogueFile.objects.filter(lfn="in.data.000001").update(n_events=None)
    fed(nEventsPerInputFile=25)
    assert [f.n_events for f in files("in.data")] == [25, 25]
    Task.objects.all().delete()
    fed(nEventsPerInputFile=25, useRealNumEvents=True)
    assert [f.n_events for f in files("in.data")] == [10, 25]


@pytest.mark.parametrize("needing", [{"nEventsPerJob": 15}, {"tgtNumEventsPerJob": 15}])
def test_a_task_that_counts_events_where_nobody_did_is_broken_and_says_which_parameter_wants_them(
    needing: dict[str, Any],
) -> None:
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", nFilesPerJob=None, **needing))
    CatalogueFile.objects.filter(lfn="in.data.000001").update(n_events=None)
    run_agents(1, FEED)
    task.refresh_from_db()
    assert task.status == "tobroken"
    [name] = needing
    assert task.error_dialog.startswith(f"{name}: {name} needs the events of each input file")
    assert "give nEventsPerInputFile" in task.error_dialog


def test_a_part_of_a_dataset_needs_only_the_events_of_that_part() -> None:
    catalogue_dataset("in.data", 3)
    CatalogueFile.objects.filter(lfn="in.data.000002").update(n_events=None)
    assert fed(nFilesPerJob=None, nEventsPerJob=15, nFiles=2).status == "ready"
    Task.objects.all().delete()
    task = fed(nFilesPerJob=None, nEventsPerJob=15, nFiles=3)
    assert task.status == "tobroken"
    assert "in.data.000002" in task.error_dialog


def test_cut_events_end_with_the_last_wanted_one_and_short_tails_are_left_out() -> None:
    catalogue_dataset("in.data", 4)
    task = fed(nFilesPerJob=None, nEventsPerJob=4, nEvents=25)
    assert "NE=4" in task.split_rule
    assert [f.n_events for f in files("in.data")] == [10, 10, 5]
    Task.objects.all().delete()
    fed(nFilesPerJob=None, nEventsPerJob=4, nEvents=23, skipShortInput=True)
    assert [f.n_events for f in files("in.data")] == [8, 8]
    assert Dataset.objects.get(dataset_name="in.data").n_events == 16


def test_the_first_event_of_a_file_follows_the_files_before_also_those_of_other_datasets() -> None:
    catalogue_dataset("in.data", 2)
    catalogue_dataset("more.data", 2)
    number = {"type": "template", "param_type": "number", "value": "--first ${FIRSTEVENT}", "offset": 1000}
    first = {**FIRST, "dataset": "in.data,more.data"}
    task = submitted(reading("t", "in.data", jobParameters=[first, number, OUT]))
    run_agents(1, FEED)
    task.refresh_from_db()
    assert "FT=1000" in task.split_rule
    assert [f.first_event for f in files("in.data") + files("more.data")] == [1, 11, 21, 31]


def test_lumi_blocks_and_boundaries_come_with_the_files_and_stand_together() -> None:
    catalogue_dataset("in.data", 5)
    for i, (boundary, block) in enumerate([(2, 7), (1, 9), (None, None), (1, 8), (2, 6)]):
        CatalogueFile.objects.filter(lfn=f"in.data.{i:06d}").update(boundary_id=boundary, lumi_block_nr=block)
    fed(orderByLB=True)
    assert [f.lumi_block_nr for f in files("in.data")] == [6, 7, 8, 9, None]
    Task.objects.all().delete()
    catalogue_dataset("low", 2)
    CatalogueFile.objects.filter(lfn="low.000000").update(boundary_id=2)
    CatalogueFile.objects.filter(lfn="low.000001").update(boundary_id=1)
    fed({**IN, "dataset": "low", "value": "--low ${LOW/L}"}, groupBoundaryID=1, respectLB=True)
    assert [f.boundary_id for f in files("low")] == [1, 2]
    assert [(f.boundary_id, f.lumi_block_nr) for f in files("in.data")] == [(1, 8), (1, 9), (2, 6), (2, 7), (None, None)]


def test_a_random_order_is_the_same_when_a_task_is_fed_again() -> None:
    catalogue_dataset("in.data", 30)
    task = submitted(reading("t", "in.data", jobParameters=[{**FIRST, "random": True}, OUT]))
    run_agents(1, FEED)
    order = [f.lfn for f in files("in.data")]
    assert sorted(order) != order
    File.objects.all().delete()
    Dataset.objects.filter(type="input").update(n_files=0, n_files_to_be_used=0, n_events=None)
    Task.objects.filter(id=task.id).update(status="defined")
    run_agents(1, FEED)
    assert [f.lfn for f in files("in.data")] == order


def test_files_whose_number_a_partner_lacks_are_left_out() -> None:
    catalogue_dataset("in.data", 4)
    catalogue_dataset("tags", 6)
    CatalogueFile.objects.filter(lfn="tags.000001").delete()
    consistent = {"indexConsistent": True}
    items = [{**FIRST, **consistent}, {**IN, "dataset": "tags", "value": "--tag ${TAG/L}", **consistent}, OUT]
    submitted(reading("t", "in.data", jobParameters=items))
    run_agents(1, FEED)
    assert [f.lfn[-1] for f in files("in.data")] == [f.lfn[-1] for f in files("tags")] == ["0", "2", "3"]


def test_fields_of_file_names_make_boundaries_of_their_own() -> None:
    dataset = CatalogueDataset.objects.create(vo="demo", name="in.data", state="closed")
    for lfn in ("x.b.1", "x.a.2", "x.b.3"):
        CatalogueFile.objects.create(dataset=dataset, lfn=lfn, fsize=1, checksum="00000001")
    out = {**OUT, "value": "--out=t.${MIDDLENAME}.${SN}.txt"}
    named = {"addNthFieldToLFN": "2", "useFileAsSourceLFN": True}
    task = submitted(reading("t", "in.data", jobParameters=[FIRST, out], **named))
    run_agents(1, FEED)
    task.refresh_from_db()
    assert task.split_rule == "NF=2,UF=1,GB=1,AN=2,US=1"
    assert [(f.lfn, f.boundary_id) for f in files("in.data")] == [("x.a.2", 1), ("x.b.1", 2), ("x.b.3", 2)]


def test_a_file_that_lacks_the_field_breaks_the_task_and_is_named() -> None:
    dataset = CatalogueDataset.objects.create(vo="demo", name="in.data", state="closed")
    for lfn in ("x.b.1", "short"):
        CatalogueFile.objects.create(dataset=dataset, lfn=lfn, fsize=1, checksum="00000001")
    out = {**OUT, "value": "--out=t.${MIDDLENAME}.${SN}.txt"}
    task = submitted(reading("t", "in.data", jobParameters=[FIRST, out], addNthFieldToLFN=[2], useFileAsSourceLFN=True))
    run_agents(1, FEED)
    task.refresh_from_db()
    assert (task.status, task.error_dialog) == (
        "tobroken",
        "addNthFieldToLFN: short has 1 fields between dots, field 2 is asked for",
    )


def test_a_job_says_what_the_payload_calls_its_outputs() -> None:
    (queue,) = grid("ALPHA")
    items = [
        {**OUT, "sourceName": "event.txt"},
        {**OUT, "value": "--hist=t.hist.${SN}.txt"},
        {**OUT, "dataset": "t.NTUP", "value": "--ntup=ntup.${SN:08d}", "sourceName": "ntuple.root"},
    ]
    submitted(parameters("t", nEvents=10, jobParameters=items))
    run_agents()
    job = job_document(take(queue).job_id)
    assert {o["lfn"]: o["source_name"] for o in job["outputs"]} == {
        "t.OUT.000001.txt": "event.txt",
        "t.hist.000001.txt": None,
        "ntup.00000001": "ntuple.root",
        "t.log.000001.tgz": None,
    }
    assert "--out=t.OUT.000001.txt" in job["parameters"]


def test_a_template_dataset_is_not_registered_and_its_serials_and_source_name_are_kept() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 2)
    out = {**OUT, "sourceName": "out.txt", "offset": 5}
    task = submitted(reading("t", "in.data", jobParameters=[FIRST, out], instantiateTmplSite=True))
    run_agents(1, FEED)
    task.refresh_from_db()
    assert "IA=1" in task.split_rule
    assert set(Dataset.objects.filter(type__startswith="tmpl").values_list("type", "status")) == {
        ("tmpl_output", "defined"),
        ("tmpl_log", "defined"),
    }
    assert not CatalogueDataset.objects.filter(name="t.OUT").exists()
    template = OutputTemplate.objects.get(out_type="output")
    assert (template.source_name, template.serial_nr) == ("out.txt", 5)


def test_a_worker_that_feeds_very_many_files_keeps_each_of_them_once() -> None:
    n = 20_000
    grid("ALPHA")
    made = CatalogueDataset.objects.create(vo="demo", name="in.data", state="closed")
    CatalogueFile.objects.bulk_create(
        (
            CatalogueFile(dataset=made, lfn=f"in.data.{i:06d}", fsize=10**8 + i, checksum=f"{i:08x}", n_events=1000)
            for i in range(n)
        ),
        batch_size=1000,  # one statement of all takes so long to write on a busy machine that the server hangs up
    )
    task = submitted(reading("t1", "in.data"))
    run_agents(1, ["refine"])
    tracemalloc.start()
    run_agents(1, ["feed"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400 * n, f"{peak // n} bytes a file"
    dataset = Dataset.objects.get(task_id=task.id, type="input")
    assert (dataset.n_files, dataset.n_events) == (n, 1000 * n)
    assert File.objects.filter(dataset=dataset).order_by("-id")[0].first_event == 1 + 1000 * (n - 1)
