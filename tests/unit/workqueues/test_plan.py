"""What a task becomes once it is accepted: its row, its datasets, its output names, its command line; and what it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.workqueues.examples import Params, constant, generation, pile_up, processing, template
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import (
    DatasetFacts,
    ParentFacts,
    TaskFaults,
    TaskPlan,
    TaskWait,
    check_inputs,
    plan,
    read_task,
)

INPUT = "mc26.gen.boson.EVT"
SEED = {"type": "template", "param_type": "number"}
KNOWN = {INPUT: DatasetFacts(INPUT, "closed", 20)}


def _rule(plan: TaskPlan) -> str:
    return str(plan.columns["split_rule"])


def planned(params: Params, **more: Any) -> TaskPlan:
    refined = plan(read_task(params), task_id=17, user_name="eve", **{"known": KNOWN, **more})
    assert isinstance(refined, TaskPlan), refined
    return refined


def test_a_generation_task() -> None:
    task = planned(generation())
    assert _rule(task) == "NE=250,RS=4000,US=2"
    assert task.job_parameters == (
        "--energy 13600 --card boson.cfg --seed ${RNDMSEED} --events ${MAXEVENTS} --run ${SEQNUMBER} --out=${OUTPUT0}"
    )
    assert [(d.name, d.type, d.stream_name, d.master, d.n_files, d.offset) for d in task.datasets] == [
        ("pseudo_dataset", "pseudo_input", "SEQNUMBER", True, 40, 0),
        ("pseudo_rndmseed", "random_seed", "RNDMSEED", False, None, 4000),
        ("mc26.gen.boson.EVT", "output", "OUTPUT0", False, None, 0),
        ("mc26.gen.boson.log", "log", "LOG0", False, None, 0),
    ]
    assert [(t.dataset_index, t.filename_template, t.stream_name, t.serial_nr, t.out_type) for t in task.templates] == [
        (2, "mc26.gen.boson.EVT.${SN}.root", "OUTPUT0", 0, "output"),
        (3, "mc26.gen.boson.log.${SN}.tgz", "LOG0", 0, "log"),
    ]
    assert task.datasets[2].storage_token == "DATADISK"
    assert (task.max_attempt, task.max_failure) == (5, None)


def test_the_columns_of_a_task() -> None:
    columns = planned({**generation(), "coreCount": 4, "campaign": "MC26", "termCondition": "90% of files"}).columns
    assert columns["task_name"] == "mc26.gen.boson"
    assert columns["user_name"] == "mcteam"
    assert (columns["task_priority"], columns["current_priority"]) == (600, 600)
    assert (columns["core_count"], columns["ram_count"], columns["ram_unit"]) == (4, 1900, "MBPerCore")
    assert (columns["cpu_efficiency"], columns["base_walltime"]) == (90, 600)
    assert (columns["campaign"], columns["cloud"], columns["goal"]) == ("MC26", "WORLD", 900)
    assert (columns["req_id"], columns["parent_tid"]) == (17, 17)


def test_defaults_where_the_user_says_nothing() -> None:
    task = processing()
    del task["userName"], task["taskType"], task["taskPriority"], task["coreCount"]
    columns = planned(task).columns
    assert (columns["user_name"], columns["task_type"], columns["current_priority"], columns["core_count"]) == (
        "eve",
        "anal",
        0,
        1,
    )


def test_a_processing_task() -> None:
    params = {**processing(), "nFiles": 10, "includedSite": "A,B", "excludedSite": ["C"]}
    task, document = planned(params), read_task(params).parameters
    master, output, log = task.datasets
    assert (master.name, master.type, master.master, master.n_files, master.state) == (INPUT, "input", True, 10, "closed")
    assert (output.provenance_index, log.provenance_index) == (0, 0)
    assert (document.includedSite, document.excludedSite) == (("A", "B"), ("C",))
    rules = parse(_rule(task))
    assert (rules.files_per_job, rules.limited_sites) == (2, 3)


def test_a_comma_list_gives_several_masters_of_one_stream() -> None:
    task = processing()
    task["jobParameters"][0]["dataset"] = "run.one,run.two"
    known = {name: DatasetFacts(name) for name in ("run.one", "run.two")}
    masters = [d for d in planned(task, known=known).datasets if d.master]
    assert [(d.name, d.stream_name) for d in masters] == [("run.one", "IN"), ("run.two", "IN")]


def test_events_a_job_that_are_whole_files_become_files_a_job() -> None:
    task = {**processing(), "nEventsPerJob": 3000, "nEventsPerInputFile": 1000, "nFilesPerJob": None}
    assert parse(_rule(planned(task))).files_per_job == 3
    assert parse(_rule(planned({**task, "nFilesPerJob": 2}))).files_per_job == 2


def test_retry_switched_off_means_one_try_and_a_note_says_so() -> None:
    task = planned({**processing(), "disableAutoRetry": True, "maxAttempt": 5})
    assert task.max_attempt == 1
    assert parse(_rule(task)).no_retry
    assert any(note.field == "maxAttempt" for note in task.notes)


def test_the_command_line_keeps_order_padding_and_hides_what_is_hidden() -> None:
    task = processing()
    task["jobParameters"] = [
        {**constant('-p "'), "padding": False},
        {**constant("run.sh"), "padding": False},
        constant('"'),
        template("input", INPUT, "-i ${IN}"),
        {**template("output", "hist.out", "h.$JEDITASKID.${SN}.root"), "hidden": True, "allowNoOutput": True, "offset": 9},
        template("log", "more.log", "--log=more.${SN:08d}.txt"),
        constant("-o h:${OUTPUT0}"),
    ]
    refined = planned(task)
    assert refined.job_parameters == '-p "run.sh" -i ${IN} --log=${LOG0} -o h:${OUTPUT0}'
    assert [(t.stream_name, t.serial_nr, t.optional) for t in refined.templates] == [
        ("OUTPUT0", 9, True),
        ("LOG0", 0, False),
        ("LOG1", 0, False),
    ]
    assert refined.datasets[1].attributes == "an"


def test_two_templates_may_write_into_one_dataset() -> None:
    task = processing()
    task["jobParameters"].append(template("output", "mc26.reco.boson.AOD", "--second=second.${SN}.root"))
    refined = planned(task)
    assert [t.dataset_index for t in refined.templates] == [1, 1, 2]


@pytest.mark.parametrize("status", ["registered", "running", "exhausted", "pending", "paused"])
def test_a_child_waits_for_a_parent_that_runs_without_using_up_its_time(status: str) -> None:
    child = {**processing(), "parentTaskName": "mc26.gen.boson"}
    refined = plan(read_task(child), task_id=18, user_name="eve", parent=ParentFacts(17, status, frozenset([INPUT])), known={})
    assert isinstance(refined, TaskWait)
    assert not refined.clock
    assert "17" in refined.reason and status in refined.reason


@pytest.mark.parametrize("status", ["failed", "broken", "aborted"])
def test_a_child_of_a_parent_that_ended_badly_is_broken(status: str) -> None:
    child = {**processing(), "parentTaskName": "mc26.gen.boson"}
    refined = plan(read_task(child), task_id=18, user_name="eve", parent=ParentFacts(17, status), known=KNOWN)
    assert isinstance(refined, TaskFaults)
    assert [(p.field, p.rule) for p in refined.problems] == [("parentTaskName", "parent")]


def test_a_parent_that_nobody_knows_breaks_the_child() -> None:
    refined = plan(read_task({**processing(), "parentTaskName": "none"}), task_id=18, user_name="eve", known=KNOWN)
    assert isinstance(refined, TaskFaults)


@pytest.mark.parametrize("status", ["done", "finished"])
def test_a_child_goes_on_when_its_parent_has_ended_well(status: str) -> None:
    child = {**processing(), "parentTaskName": "mc26.gen.boson"}
    refined = planned(child, parent=ParentFacts(17, status, frozenset([INPUT])), known={})
    assert refined.columns["parent_tid"] == 17
    assert refined.datasets[0].state == "missing"


def test_an_input_that_nobody_has_is_an_error_with_its_place() -> None:
    refined = plan(read_task(processing()), task_id=18, user_name="eve", known={})
    assert isinstance(refined, TaskFaults)
    assert [(p.field, p.rule) for p in refined.problems] == [("jobParameters[0].dataset", "dataset")]
    assert INPUT in refined.reason
    assert check_inputs(read_task(processing()), ParentFacts(17, "running", frozenset([INPUT])), {}) == []


def test_a_task_may_wait_for_its_input_and_its_time_runs() -> None:
    refined = plan(read_task({**processing(), "waitInput": True}), task_id=18, user_name="eve", known={})
    assert isinstance(refined, TaskWait)
    assert refined.clock
    assert INPUT in refined.reason


def test_a_task_that_allows_empty_input_is_defined_without_it() -> None:
    refined = planned({**processing(), "allowEmptyInput": True}, known={})
    assert refined.datasets[0].state == "missing"
    assert parse(_rule(refined)).allow_empty_input


def test_a_wrong_task_is_broken_with_all_its_faults() -> None:
    refined = plan(read_task({}), task_id=18, user_name="eve", known={})
    assert isinstance(refined, TaskFaults)
    assert "taskName" in refined.reason and "vo" in refined.reason


def test_inputs_to_look_up() -> None:
    assert read_task(processing()).input_names == (INPUT,)
    assert read_task(generation()).input_names == ()
    assert read_task({"jobParameters": 5}).input_names == ()


def whole_pile_up() -> Params:
    """Two background files a signal file, the list of them used cyclically, conditions for every job, number and seed."""
    task = {**pile_up(), "nEventsPerInputFile": 2000, "nEventsPerJob": 2000}
    del task["jobParameters"][1]["expand"]  # row J26
    task["jobParameters"].append({**SEED, "value": "--seed ${RNDMSEED} --skip ${SKIPEVENTS}", "offset": 100})
    return task


def known(*names: str, **facts: Any) -> dict[str, DatasetFacts]:
    return {name: DatasetFacts(name, "closed", 20, **facts) for name in names}


def test_pile_up() -> None:
    task = planned(whole_pile_up(), known=known(INPUT, "minbias.soft", "conditions.v9", n_uncounted=20))
    assert _rule(task) == "NF=1,EI=2000,UX=1,RS=100,US=2"
    assert [(d.name, d.type, d.stream_name, d.master_index, d.attributes, d.needs_events) for d in task.datasets] == [
        (INPUT, "input", "IN", None, "", ""),
        ("minbias.soft", "input", "LOW", 0, "repeat,ratio=2", ""),
        ("conditions.v9", "input", "DBF", 0, "repeat,nosplit", ""),
        ("pseudo_rndmseed", "random_seed", "RNDMSEED", 0, "", ""),
        ("mc26.reco.boson.AOD", "output", "OUTPUT0", None, "", ""),
        ("mc26.reco.boson.log", "log", "LOG0", None, "", ""),
    ]
    assert task.job_parameters == (
        "--in ${IN/L} --low ${LOW/L} --db ${DBF} --out=${OUTPUT0} --seed ${RNDMSEED} --skip ${SKIPEVENTS}"
    )


def test_secondary_datasets_hang_on_the_last_master_and_streams_without_text_are_counted() -> None:
    task = processing()
    task["jobParameters"][0]["dataset"] = "run.one,run.two"
    task["jobParameters"] += [
        {"type": "template", "param_type": "input", "dataset": "low.a,low.b", "nFilesPerJob": 1},
        template("input", "run.one,run.two", "--again ${IN[0:1]}"),
        {"type": "template", "param_type": "input", "dataset": "high.a", "eventRatio": 0.5},
    ]
    refined = planned(task, known=known("run.one", "run.two", "low.a", "low.b", "high.a"))
    assert [(d.name, d.stream_name, d.master_index, d.attributes) for d in refined.datasets if d.type == "input"] == [
        ("run.one", "IN", None, ""),
        ("run.two", "IN", None, ""),
        ("low.a", "IN2", 1, "np=1"),
        ("low.b", "IN2", 1, "np=1"),
        ("high.a", "IN4", 1, "er=0.5"),
    ]
    assert [d.needs_events for d in refined.datasets[:2]] == ["eventRatio", "eventRatio"]


@pytest.mark.parametrize(
    ("sequence", "attributes", "n_files"),
    [({}, "np=1", None), ({"offset": 5}, "np=1,of=5", None), ({"offset": 5, "num_records": 9}, "np=1,nr=9,of=5", 9)],
)
def test_a_sequence_beside_files_is_a_secondary_dataset(sequence: Params, attributes: str, n_files: int | None) -> None:
    task = processing()
    task["jobParameters"].append({**template("pseudo_input", "seq_number", "--run ${SEQNUMBER}"), **sequence})
    row = next(d for d in planned(task).datasets if d.type == "pseudo_input")
    assert (row.name, row.master_index, row.stream_name) == ("pseudo_seq_number", 0, "SEQNUMBER")
    assert (row.attributes, row.n_files) == (attributes, n_files)


def test_a_sequence_says_how_many_jobs_a_task_without_input_makes() -> None:
    task = {**generation(), "nEvents": None, "nEventsPerJob": None}
    task["jobParameters"][3]["num_records"] = 7
    assert planned(task).datasets[0].n_files == 7


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"nEventsPerJob": 3000, "nEventsPerInputFile": 1000}, "NF=2,EI=1000,US=2"),
        ({"nEventsPerJob": 1500, "nEventsPerInputFile": 1000}, "NF=2,NE=1500,EI=1000,US=2"),
        ({"nEventsPerJob": 3000, "nEventsPerInputFile": 1000, "useRealNumEvents": True}, "NF=2,NE=3000,EI=1000,UE=1,US=2"),
        ({"nEventsPerJob": 1500}, "NF=2,NE=1500,US=2"),
        ({"tgtNumEventsPerJob": 700, "nFilesPerJob": None}, "TE=700,US=2"),
        (
            {"groupBoundaryID": 2, "respectLB": True, "orderByLB": True, "maxWalltime": 10, "skipShortOutput": True},
            "NF=2,GB=2,MW=10,SH=1,RL=1,OL=1,US=2",
        ),
    ],
)
def test_codes_of_splitting(more: Params, rule: str) -> None:
    assert _rule(planned({**processing(), **more})) == rule


@pytest.mark.parametrize("name", ["nEventsPerJob", "tgtNumEventsPerJob"])
def test_events_that_nobody_knows_are_told_at_submission(name: str) -> None:
    task = {**processing(), "nFilesPerJob": None, name: 700}
    [fault] = check_inputs(read_task(task), None, known(INPUT, n_uncounted=1))
    assert (fault.field, fault.rule) == (name, "events")
    assert INPUT in fault.message and "give nEventsPerInputFile" in fault.message
    assert check_inputs(read_task({**task, "nEventsPerInputFile": 300}), None, known(INPUT, n_uncounted=1)) == []
    assert check_inputs(read_task({**task, "nFiles": 3}), None, known(INPUT, n_uncounted=1)) == []  # perhaps not among the three
    assert check_inputs(read_task({**task, "nFiles": 3}), None, known(INPUT, n_uncounted=20)) != []
    assert check_inputs(read_task(task), None, known(INPUT)) == []


def test_events_of_a_secondary_dataset_count_only_with_an_event_ratio() -> None:
    task = {**processing(), "nEventsPerInputFile": 10}
    task["jobParameters"].append({**template("input", "low", "${LOW}"), "eventRatio": 2})
    both = known(INPUT) | known("low", n_uncounted=1)
    assert [(p.field, p.rule) for p in check_inputs(read_task(task), None, both)] == [("jobParameters[2].eventRatio", "events")]


def test_outputs_of_a_task_that_instantiates_are_templates_whose_names_no_child_reads() -> None:
    task = {**processing(), "instantiateTmpl": True}
    refined = planned(task)
    assert [d.type for d in refined.datasets] == ["input", "tmpl_output", "tmpl_log"]
    assert [(t.dataset_index, t.out_type) for t in refined.templates] == [(1, "output"), (2, "log")]
    assert parse(_rule(refined)).instantiate
    assert read_task(task).output_names == ()
    assert read_task(processing()).output_names == ("mc26.reco.boson.AOD", "mc26.reco.boson.log")


def test_what_the_attributes_of_an_input_say_of_its_copies_has_an_effect_and_no_note() -> None:
    task = processing()
    task["jobParameters"][0]["attributes"] = "manytime,cvmfs"
    assert "jobParameters[0].attributes" not in {note.field for note in planned(task).notes}
