"""What a task becomes once it is accepted: its row, its datasets, its output names, its command line; and what it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.workqueues.examples import Params, constant, generation, processing, template
from workqueues.rules.refine import Broken, DatasetFacts, ParentFacts, TaskPlan, Wait, check_inputs, input_names, plan
from workqueues.rules.split_rule import parse

INPUT = "mc26.gen.boson.EVT"
KNOWN = {INPUT: DatasetFacts(INPUT, "closed", 20)}


def planned(params: Params, **more: Any) -> TaskPlan:
    refined = plan(params, task_id=17, user_name="eve", **{"known": KNOWN, **more})
    assert isinstance(refined, TaskPlan), refined
    return refined


def test_a_generation_task() -> None:
    task = planned(generation())
    assert task.split_rule == "NE=250,RS=4000,US=1"
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
    task = planned({**processing(), "nFiles": 10, "includedSite": "A,B", "excludedSite": ["C"]})
    master, output, log = task.datasets
    assert (master.name, master.type, master.master, master.n_files, master.state) == (INPUT, "input", True, 10, "closed")
    assert (output.provenance_index, log.provenance_index) == (0, 0)
    assert (task.included_sites, task.excluded_sites) == (("A", "B"), ("C",))
    rules = parse(task.split_rule)
    assert (rules.files_per_job, rules.limited_sites) == (2, 3)


def test_a_comma_list_gives_several_masters_of_one_stream() -> None:
    task = processing()
    task["jobParameters"][0]["dataset"] = "run.one,run.two"
    known = {name: DatasetFacts(name) for name in ("run.one", "run.two")}
    masters = [d for d in planned(task, known=known).datasets if d.master]
    assert [(d.name, d.stream_name) for d in masters] == [("run.one", "IN"), ("run.two", "IN")]


def test_events_a_job_that_are_whole_files_become_files_a_job() -> None:
    task = {**processing(), "nEventsPerJob": 3000, "nEventsPerInputFile": 1000, "nFilesPerJob": None}
    assert parse(planned(task).split_rule).files_per_job == 3
    assert parse(planned({**task, "nFilesPerJob": 2}).split_rule).files_per_job == 2


def test_retry_switched_off_means_one_try_and_a_note_says_so() -> None:
    task = planned({**processing(), "disableAutoRetry": True, "maxAttempt": 5})
    assert task.max_attempt == 1
    assert parse(task.split_rule).no_retry
    assert any(note.field == "maxAttempt" for note in task.notes)


def test_wishes_without_effect_yet_are_noted() -> None:
    notes = {note.field for note in planned({**generation(), "skipScout": True}).notes}
    assert notes == {"skipScout"}


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
    refined = plan(child, task_id=18, user_name="eve", parent=ParentFacts(17, status, frozenset([INPUT])), known={})
    assert isinstance(refined, Wait)
    assert not refined.clock
    assert "17" in refined.reason and status in refined.reason


@pytest.mark.parametrize("status", ["failed", "broken", "aborted"])
def test_a_child_of_a_parent_that_ended_badly_is_broken(status: str) -> None:
    child = {**processing(), "parentTaskName": "mc26.gen.boson"}
    refined = plan(child, task_id=18, user_name="eve", parent=ParentFacts(17, status), known=KNOWN)
    assert isinstance(refined, Broken)
    assert [(p.field, p.rule) for p in refined.problems] == [("parentTaskName", "parent")]


def test_a_parent_that_nobody_knows_breaks_the_child() -> None:
    refined = plan({**processing(), "parentTaskName": "none"}, task_id=18, user_name="eve", known=KNOWN)
    assert isinstance(refined, Broken)


@pytest.mark.parametrize("status", ["done", "finished"])
def test_a_child_goes_on_when_its_parent_has_ended_well(status: str) -> None:
    child = {**processing(), "parentTaskName": "mc26.gen.boson"}
    refined = planned(child, parent=ParentFacts(17, status, frozenset([INPUT])), known={})
    assert refined.columns["parent_tid"] == 17
    assert refined.datasets[0].state == "missing"


def test_an_input_that_nobody_has_is_an_error_with_its_place() -> None:
    refined = plan(processing(), task_id=18, user_name="eve", known={})
    assert isinstance(refined, Broken)
    assert [(p.field, p.rule) for p in refined.problems] == [("jobParameters[0].dataset", "dataset")]
    assert INPUT in refined.reason
    assert check_inputs(processing(), ParentFacts(17, "running", frozenset([INPUT])), {}) == []


def test_a_task_may_wait_for_its_input_and_its_time_runs() -> None:
    refined = plan({**processing(), "waitInput": True}, task_id=18, user_name="eve", known={})
    assert isinstance(refined, Wait)
    assert refined.clock
    assert INPUT in refined.reason


def test_a_task_that_allows_empty_input_is_defined_without_it() -> None:
    refined = planned({**processing(), "allowEmptyInput": True}, known={})
    assert refined.datasets[0].state == "missing"
    assert parse(refined.split_rule).allow_empty_input


def test_a_wrong_task_is_broken_with_all_its_faults() -> None:
    refined = plan({}, task_id=18, user_name="eve", known={})
    assert isinstance(refined, Broken)
    assert "taskName" in refined.reason and "vo" in refined.reason


def test_inputs_to_look_up() -> None:
    assert input_names(processing()) == (INPUT,)
    assert input_names(generation()) == ()
    assert input_names({"jobParameters": 5}) == ()
