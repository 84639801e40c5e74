"""What a user is told about a task that cannot be accepted: every fault at once, each with its field and rule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.workqueues.examples import Params, analysis, constant, event_service, generation, pile_up, processing, template
from workqueues.rules.refine import TaskFaults, TaskWait, bounded, check_inputs, plan, read_task, validate
from workqueues.rules.refine.types import MOST_LISTED
from workqueues.rules.task_parameters import TASK_PARAMETERS, TaskParameters, not_yet


def faults(params: Params) -> set[tuple[str, str]]:
    return {(p.field, p.rule) for p in validate(params)}


def with_item(params: Params, index: int, **changes: Any) -> Params:
    params["jobParameters"][index] = {**params["jobParameters"][index], **changes}
    return params


@pytest.mark.parametrize("task", [generation, processing])
def test_good_tasks_have_no_fault(task: Callable[[], Params]) -> None:
    assert validate(task()) == []


def test_each_required_parameter_is_named_when_it_is_missing() -> None:
    assert faults({}) >= {(name, "required") for name, p in TASK_PARAMETERS.items() if p.required}
    for name, parameter in TASK_PARAMETERS.items():
        if parameter.required:
            task = processing()
            del task[name]
            assert (name, "required") in faults(task)


def test_all_faults_come_at_once() -> None:
    task = generation()
    task |= {"nFilesPerJobs": 2, "maxAttempt": "five", "ramCount": -1, "useSecrets": True, "taskName": "x" * 300, "vo": "a\0b"}
    with_item(task, 4, dataset="")
    assert faults(task) == {
        ("nFilesPerJobs", "unknown"),
        ("maxAttempt", "type"),
        ("ramCount", "range"),
        ("useSecrets", "not_supported_yet"),
        ("taskName", "length"),
        ("vo", "characters"),
        ("jobParameters[4].dataset", "required"),
    }


def test_the_first_event_of_jobs_without_input_needs_their_events() -> None:
    task = generation()
    at = len(task["jobParameters"])
    task["jobParameters"].append({"type": "template", "param_type": "number", "value": "--first ${FIRSTEVENT}"})
    assert validate(task) == []
    del task["nEvents"]
    task["nFiles"] = 3
    assert validate(task) == []
    del task["nEventsPerJob"]
    assert faults(task) == {(f"jobParameters[{at}].value", "events")}


def test_an_unknown_parameter_names_the_nearest_known_one() -> None:
    [fault] = validate({**processing(), "nFilePerJob": 3})
    assert (fault.field, fault.rule) == ("nFilePerJob", "unknown")
    assert "nFilesPerJob" in fault.message


def test_a_length_fault_names_column_and_limit() -> None:
    [fault] = validate({**processing(), "workingGroup": "G" * 33})
    assert fault.message == "33 characters, the limit of the column working_group is 32"


@pytest.mark.parametrize("name", sorted(not_yet()))
def test_every_feature_that_is_not_built_is_refused(name: str) -> None:
    for value in (True, 3, "x", "runonce", "eventsAlignment", "only", "on", {"a": 1}):
        answers = [p for p in validate({**processing(), name: value}) if p.field == name]
        assert any(p.rule == "not_supported_yet" and p.message.endswith("Not supported yet") for p in answers)
        if len(answers) == 1:
            return
    pytest.fail("no value has the type of this parameter")


@pytest.mark.parametrize("name", sorted(not_yet()))
def test_what_asks_for_nothing_is_accepted(name: str) -> None:
    assert validate({**processing(), name: None}) == []
    assert validate({**processing(), name: TASK_PARAMETERS[name].default}) == []


NUMBERS = [
    name
    for name, schema in TaskParameters.model_json_schema()["properties"].items()
    if any(option.get("type") in ("integer", "number") and "enum" not in option for option in schema.get("anyOf", [schema]))
    and name not in ("addNthFieldToLFN", "skipFilesUsedBy")
]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_has_two_limits(name: str) -> None:
    for wrong in (-2, 10**15):
        assert (name, "range") in faults({**processing(), name: wrong})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"nEventsPerJob": 10, "nEventsPerRange": 5}, ("nEventsPerJob", "contradiction")),
        ({"nEventsPerJob": 10, "minGranularity": 5}, ("nEventsPerJob", "contradiction")),
        ({"nEventsPerJob": 10, "tgtNumEventsPerJob": 5}, ("nEventsPerJob", "contradiction")),
        ({"nEventsPerJob": 10, "useJobCloning": "runonce"}, ("nEventsPerJob", "contradiction")),
        ({"groupBoundaryID": 3}, ("nFilesPerJob", "contradiction")),
        ({"groupBoundaryID": 4, "nGBPerJob": 1}, ("nGBPerJob", "contradiction")),
        ({"groupBoundaryID": 4, "nEventsPerJob": 1}, ("nEventsPerJob", "contradiction")),
        ({"nMaxFilesPerJob": 1}, ("nFilesPerJob", "contradiction")),
        ({"nFilesPerMergeJob": 9, "nMaxFilesPerMergeJob": 8}, ("nFilesPerMergeJob", "contradiction")),
        ({"groupBoundaryID": 4, "tgtNumEventsPerJob": 5}, ("tgtNumEventsPerJob", "contradiction")),
        ({"skipShortInput": True}, ("skipShortInput", "contradiction")),
        ({"skipFilesUsedBy": "7,x"}, ("skipFilesUsedBy", "type")),
        ({"fixedSandbox": "sources.2.tgz"}, ("fixedSandbox", "contradiction")),
        ({"fixedSandbox": "a b"}, ("fixedSandbox", "format")),
        ({"sourceURL": "https://x.org/'; rm"}, ("sourceURL", "format")),
        ({"useInFilesWithNewAttemptNr": True}, ("useInFilesWithNewAttemptNr", "contradiction")),
        ({"skipFilesUsedBy": [0]}, ("skipFilesUsedBy", "type")),
        ({"skipFilesUsedBy": 1.5}, ("skipFilesUsedBy", "type")),
        ({"skipFilesUsedBy": 7, "oldDatasetName": "a.b", "lostFiles": "x"}, ("skipFilesUsedBy", "contradiction")),
        (
            {"nEventsPerJob": 1500, "nEventsPerInputFile": 1000, "skipShortInput": True},
            ("skipShortInput", "contradiction"),
        ),
        ({"nFilesPerJob": None, "skipShortOutput": True}, ("skipShortOutput", "contradiction")),
        ({"useFileAsSourceLFN": True}, ("useFileAsSourceLFN", "contradiction")),
        ({"addNthFieldToLFN": 2}, ("addNthFieldToLFN", "contradiction")),
        ({"addNthFieldToLFN": "2,zero"}, ("addNthFieldToLFN", "type")),
        ({"addNthFieldToLFN": [0]}, ("addNthFieldToLFN", "type")),
        ({"addNthFieldToLFN": [True]}, ("addNthFieldToLFN", "type")),
        ({"addNthFieldToLFN": []}, ("addNthFieldToLFN", "type")),
        ({"orderInputBy": "eventsAlignment"}, ("orderInputBy", "not_supported_yet")),
        ({"site": "A,B", "excludedSite": ["B"]}, ("excludedSite", "contradiction")),
        ({"site": "A", "includedSite": "B,C"}, ("site", "contradiction")),
        ({"includedSite": ["A"], "excludedSite": ["A"]}, ("excludedSite", "contradiction")),
        ({"ipConnectivity": "full#IPv5"}, ("ipConnectivity", "format")),
        ({"allowInputLAN": "never"}, ("allowInputLAN", "choice")),
        ({"ramUnit": "MB", "ramCountUnit": "MBPerCore"}, ("ramCountUnit", "contradiction")),
        ({"ramUnit": "GB"}, ("ramUnit", "format")),
        ({"retryRamMax": 4000}, ("retryRamMax", "contradiction")),
        ({"retryRamMax": 2000, "retryRamOffset": 3000}, ("retryRamMax", "contradiction")),
        ({"goal": 101}, ("goal", "range")),
        ({"goal": 90, "termCondition": "80% of files"}, ("termCondition", "contradiction")),
        ({"termCondition": "when it looks good"}, ("termCondition", "format")),
        ({"transPath": "../escape.py"}, ("transPath", "format")),
        ({"transPath": "/bin/sh"}, ("transPath", "format")),
        ({"noInput": True}, ("nFiles", "required")),
        ({"nFilesPerJob": 0}, ("nFilesPerJob", "range")),
        ({"nFilesPerJob": 2.5}, ("nFilesPerJob", "type")),
        ({"nFilesPerJob": True}, ("nFilesPerJob", "type")),
        ({"noInput": "yes"}, ("noInput", "type")),
        ({"maxAttempt": 10**30}, ("maxAttempt", "range")),
        ({"ramCount": float("nan")}, ("ramCount", "range")),
        ({"altStageOut": "perhaps"}, ("altStageOut", "choice")),
        ({"architecture": ["x86"]}, ("architecture", "type")),
        ({"architecture": {"cpu": "x" * 300}}, ("architecture", "length")),
        ({"mergeSpec": "text"}, ("mergeSpec", "type")),
        ({"includedSite": [1]}, ("includedSite", "type")),
        ({"jobParameters": "x"}, ("jobParameters", "type")),
        ({"jobParameters": []}, ("jobParameters", "required")),
        ({"jobParameters": [[]]}, ("jobParameters[0]", "type")),
        ({"log": "x"}, ("log", "type")),
        ({"log": constant("x")}, ("log.type", "choice")),
        ({"log": [template("output", "some.log", "x.${SN}")]}, ("log[0].param_type", "choice")),
        ({"cliParams": "\ud800"}, ("cliParams", "characters")),
        ({"taskName": "a b\n"}, ("taskName", "characters")),
        ({"userName": "ada\r\nadmin"}, ("userName", "characters")),
        ({"processingType": "ev\x1b[31mgen"}, ("processingType", "characters")),
        ({"prodSourceLabel": "user "}, ("prodSourceLabel", "characters")),
        ({"prodSourceLabel": "us\u202eer"}, ("prodSourceLabel", "characters")),
        ({"taskName": "a\u2028b"}, ("taskName", "characters")),
        ({"tags": ["GPU", "a\r\nb"]}, ("tags[1]", "characters")),
        ({"tags": "GPU,\u202eUPG"}, ("tags", "characters")),
        ({"gridCEs": ["ce\x1b[2J"]}, ("gridCEs[0]", "characters")),
        ({"pilotTypes": ["a\u2029"]}, ("pilotTypes[0]", "characters")),
        ({"jobTypes": ["a\u200b"]}, ("jobTypes[0]", "characters")),
        ({"stations": ["a\x7f"]}, ("stations[0]", "characters")),
        ({"bannedSites": ["\u2066a"]}, ("bannedSites[0]", "characters")),
        ({"includedSite": ["A\nB"]}, ("includedSite[0]", "characters")),
        ({"site": "A\u202e"}, ("site", "characters")),
        ({"setup": "a\tb"}, ("setup", "characters")),
        ({"architecture": "x86_64\u202e-el9"}, ("architecture", "characters")),
        ({"architecture": {"sw_platform": "x86_64\n-el9"}}, ("architecture.sw_platform", "characters")),
        ({"architecture": {"cpu\u202e": "x"}}, ("architecture", "characters")),
        ({"workQueueName": "a\u202eb"}, ("workQueueName", "characters")),
        ({"dsForIN2": "a\u202eb"}, ("dsForIN2", "characters")),
        ({"binding": "late", "bindingAfter": 600}, ("bindingAfter", "contradiction")),
        ({"binding": "early", "bindingAfter": 600}, ("bindingAfter", "contradiction")),
        ({"bindingAfter": 600}, ("bindingAfter", "contradiction")),
    ],
)
def test_a_fault_in_one_parameter(changes: Params, fault: tuple[str, str]) -> None:
    assert fault in faults({**processing(), **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"binding": "late_after", "bindingAfter": 600},
        {"binding": "late", "bindingAfter": None},
        {"binding": "late_after"},
        {"tags": ["größer als 2", "a.b-c_d"], "setup": "日本"},
        {"cliParams": "prun \\\n\t--in x"},
    ],
)
def test_what_is_no_fault(changes: Params) -> None:
    assert validate({**processing(), **changes}) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"nEvents": None}, ("nFiles", "required")),
        ({"nFiles": 41}, ("nFiles", "contradiction")),
        ({"nEventsPerJob": None, "nFiles": 5}, ("nEvents", "contradiction")),
        ({"nEvents": 10**12, "nEventsPerJob": 1}, ("nFiles", "range")),
        ({"nFilesPerJob": 2}, ("nFilesPerJob", "contradiction")),
        ({"nEventsPerInputFile": 10}, ("nEventsPerInputFile", "contradiction")),
        ({"respectLB": True}, ("respectLB", "contradiction")),
        ({"addNthFieldToLFN": 2}, ("addNthFieldToLFN", "contradiction")),
    ],
)
def test_a_fault_in_a_task_without_input(changes: Params, fault: tuple[str, str]) -> None:
    assert fault in faults({**generation(), **changes})


@pytest.mark.parametrize(
    ("index", "changes", "fault"),
    [
        (0, {"type": None}, ("jobParameters[0].type", "required")),
        (0, {"type": "magic"}, ("jobParameters[0].type", "choice")),
        (0, {"param_type": None}, ("jobParameters[0].param_type", "required")),
        (0, {"param_type": "random_seed"}, ("jobParameters[0].param_type", "choice")),
        (0, {"dataset": None}, ("jobParameters[0].dataset", "required")),
        (0, {"dataset": "bad name"}, ("jobParameters[0].dataset", "format")),
        (0, {"dataset": "x" * 256}, ("jobParameters[0].dataset", "length")),
        (0, {"files": 3}, ("jobParameters[0].files", "type")),
        (0, {"files": [str(n) for n in range(10_001)]}, ("jobParameters[0].files", "range")),
        (1, {"files": "a"}, ("jobParameters[1].files", "contradiction")),
        (0, {"dataset": "DBR_LATEST"}, ("jobParameters[0].dataset", "not_supported_yet")),
        (0, {"ratio": 0}, ("jobParameters[0].ratio", "range")),
        (0, {"eventRatio": -1}, ("jobParameters[0].eventRatio", "range")),
        (0, {"attributes": "repeat"}, ("jobParameters[0].repeat", "contradiction")),
        (0, {"ratio": 2}, ("jobParameters[0].ratio", "contradiction")),
        (0, {"attributes": "repeet"}, ("jobParameters[0].attributes", "unknown")),
        (0, {"num_records": 5}, ("jobParameters[0].num_records", "contradiction")),
        (0, {"indexConsistent": True}, ("jobParameters[0].indexConsistent", "contradiction")),
        (0, {"dataset": "seq_number,other.data"}, ("jobParameters[0].dataset", "contradiction")),
        (0, {"datasets": "x"}, ("jobParameters[0].datasets", "unknown")),
        (0, {"value": "--in ${IN"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN} ${MAXEVENT}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN/Q}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN} --job $ORIGINPANDAID"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN/F}"}, ("jobParameters[0].value", "not_supported_yet")),
        (0, {"value": "--in ${IN} ${MIDDLENAME}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN/M[#+1]}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN} ${SN/M[#+]}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN} ${SN/M[__import__('os')]}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN} ${SN/M}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN/L[0]}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN} -l ${TRN_LOG0}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${IN} ${MAXEVENTS[0:1]}"}, ("jobParameters[0].value", "template")),
        (0, {"value": "--in ${OUTPUT0}"}, ("jobParameters[0].value", "template")),
        (0, {"value": 5}, ("jobParameters[0].value", "type")),
        (0, {"offset": 10}, ("jobParameters[0].offset", "contradiction")),
        (0, {"allowNoOutput": True}, ("jobParameters[0].allowNoOutput", "contradiction")),
        (1, {"dataset": "mc26.gen.boson.EVT"}, ("jobParameters[1].dataset", "contradiction")),
        (1, {"value": "--out=all.root"}, ("jobParameters[1].value", "template")),
        (1, {"value": "--out all.${SN}.root"}, ("jobParameters[1].value", "template")),
        (1, {"value": "--out=../../${SN}"}, ("jobParameters[1].value", "template")),
        (1, {"value": "--out=x.${RNDMSEED}.${SN}"}, ("jobParameters[1].value", "template")),
        (1, {"value": "--out=" + "x" * 250 + "${SN}"}, ("jobParameters[1].value", "length")),
        (1, {"dataset": "mc26.reco.boson.log"}, ("log.dataset", "contradiction")),
        (1, {"value": "--out=mc26.reco.boson.log.${SN/P}.tgz"}, ("log.value", "contradiction")),
        (1, {"destination": "S" * 61}, ("jobParameters[1].destination", "length")),
        (0, {"destination": "SOMEWHERE"}, ("jobParameters[0].destination", "contradiction")),
        (1, {"ratio": 2}, ("jobParameters[1].ratio", "contradiction")),
        (1, {"sourceName": "../x"}, ("jobParameters[1].sourceName", "format")),
        (1, {"sourceName": "mc26.reco.boson.log.000001.tgz"}, ("jobParameters[1].sourceName", "contradiction")),
    ],
)
def test_a_fault_in_one_item(index: int, changes: Params, fault: tuple[str, str]) -> None:
    assert fault in faults(with_item(processing(), index, **changes))


def test_an_item_whose_type_is_misspelt_names_the_key_that_was_meant() -> None:
    task = processing()
    task["jobParameters"].append({"typ": "constant", "vale": "x"})
    n = len(task["jobParameters"]) - 1
    told = {p.field: p.message for p in validate(task)}
    assert told[f"jobParameters[{n}].typ"] == "unknown key of an item; the nearest known one is type"
    assert told[f"jobParameters[{n}].vale"] == "unknown key of an item; the nearest known one is value"
    assert f"jobParameters[{n}].type" in told


@pytest.mark.parametrize("value", [False, 0, 5, [], {}, ["a"]])
def test_further_datasets_are_one_text(value: object) -> None:
    assert ("dsForLO", "type") in faults({**processing(), "dsForLO": value})


def test_what_a_constant_says_of_itself_is_a_text() -> None:
    task = processing()
    task["jobParameters"].append({"type": "constant", "value": "x", "param_type": 5})
    assert (f"jobParameters[{len(task['jobParameters']) - 1}].param_type", "type") in faults(task)


def test_one_job_may_write_without_serial_number() -> None:
    task = with_item({**processing(), "nFiles": 2}, 1, value="--out=histogram.root")
    task["log"] = None
    assert validate(task) == []


@pytest.mark.parametrize(
    "cutting",
    [
        {"nEventsPerJob": 5},
        {"tgtNumEventsPerJob": 5, "nFilesPerJob": None},
        {"nGBPerJob": 5},
        {"groupBoundaryID": 1},
        {"respectLB": True},
        {"nFiles": 3},
    ],
)
def test_where_several_jobs_may_write_a_serial_number_is_needed(cutting: Params) -> None:
    task = with_item({**processing(), "nFiles": 2, **cutting}, 1, value="--out=histogram.root")
    assert ("jobParameters[1].value", "template") in faults(task)


def test_a_middle_name_is_no_serial_number() -> None:
    task = with_item({**processing(), "nFiles": 1, "useFileAsSourceLFN": True}, 1, value="--out=${MIDDLENAME}.root")
    assert faults({**task, "addNthFieldToLFN": 2}) == {("jobParameters[1].value", "template")}


def test_a_middle_name_must_make_a_good_file_name() -> None:
    task = with_item(processing(), 1, value="--out=${MIDDLENAME}.${SN}.root")
    assert faults({**task, "addNthFieldToLFN": [2, 3]}) == set()
    assert faults({**task, "addNthFieldToLFN": 5}) == {("addNthFieldToLFN", "template")}


@pytest.mark.parametrize(
    ("items", "fault"),
    [
        ([template("input", "other.data", "--more ${IN}")], ("jobParameters[2].value", "contradiction")),
        ([{**template("input", "other.data", "${IN2}"), "ratio": 0}], ("jobParameters[2].ratio", "range")),
        ([{**template("input", "other.data", "${IN2}"), "attributes": "ratio=0"}], ("jobParameters[2].attributes", "range")),
        ([{**template("input", "other.data", "${IN2}"), "attributes": "ratio=many"}], ("jobParameters[2].attributes", "type")),
        ([{**template("input", "other.data", "${IN2}"), "ratio": 2, "attributes": "ratio=3"}],
         ("jobParameters[2].attributes", "contradiction")),
        ([{**template("input", "other.data", "${IN2}"), "ratio": 2, "eventRatio": 1}],
         ("jobParameters[2].eventRatio", "contradiction")),
        ([{**template("input", "other.data", "${IN2}"), "ratio": 2, "attributes": "nosplit"}],
         ("jobParameters[2].ratio", "contradiction")),
        ([{**template("input", "other.data", "${IN2}"), "random": True},
          {**template("input", "other.data", "${IN2}"), "attributes": "repeat"}],
         ("jobParameters[3].attributes", "contradiction")),
        ([template("input", "mc26.gen.boson.EVT", "--again ${IN9}")], ("jobParameters[2].value", "contradiction")),
        ([{**template("pseudo_input", "seq_number", "${SEQNUMBER}"), "ratio": 2}], ("jobParameters[2].ratio", "contradiction")),
        ([template("pseudo_input", "seq_number", "${SEQNUMBER}"),
          {**template("pseudo_input", "seq_number", "${SEQNUMBER}"), "offset": 5}],
         ("jobParameters[3].dataset", "contradiction")),
        ([{**template("output", "a.b", "--b=b.${SN}"), "sourceName": "x"},
          {**template("output", "a.c", "c.${SN}"), "sourceName": "x"}],
         ("jobParameters[3].sourceName", "contradiction")),
        ([{**template("log", "a.log", "log.${SN}"), "sourceName": "x"}], ("jobParameters[2].sourceName", "contradiction")),
        ([template("pseudo_input", "numbers", "${SEQNUMBER}")], ("jobParameters[2].dataset", "choice")),
        ([constant("${SEQNUMBER}")], ("jobParameters[2].value", "template")),
        ([{"type": "template", "param_type": "number", "value": "5", "offset": 4}], ("jobParameters[2].offset", "contradiction")),
        ([{"type": "template", "param_type": "number"}], ("jobParameters[2].value", "required")),
        ([{**constant("x"), "dataset": "a.b"}], ("jobParameters[2].dataset", "contradiction")),
    ],
)  # fmt: skip
def test_a_fault_in_a_further_item(items: list[Params], fault: tuple[str, str]) -> None:
    task = processing()
    task["jobParameters"] += items
    assert fault in faults(task)


def test_two_offsets_for_one_thing_contradict() -> None:
    task = generation()
    task["jobParameters"] += [
        {"type": "template", "param_type": "number", "value": "-s ${RNDMSEED}", "offset": 1},
        {**template("pseudo_input", "seq_number", "${SEQNUMBER}"), "offset": 7},
    ]
    assert faults(task) == {("jobParameters[5].offset", "contradiction"), ("jobParameters[6].dataset", "contradiction")}


def test_the_same_input_may_stand_twice() -> None:
    task = processing()
    task["jobParameters"].append(template("input", "mc26.gen.boson.EVT", "--first ${IN[0:1]}"))
    assert validate(task) == []


def test_files_of_an_input_are_named_once() -> None:
    task = with_item(processing(), 0, files="a,b")
    task["jobParameters"].append(template("input", "mc26.gen.boson.EVT", "--first ${IN[0:1]}"))
    assert validate(task) == []
    task["jobParameters"][-1]["files"] = ["c"]
    assert faults(task) == {("jobParameters[2].files", "contradiction")}


@pytest.mark.parametrize("ids", [(7, 8), "7, 8", [8, 7, 8], 7, "", None])
def test_tasks_whose_files_are_left_out_are_given_as_a_list_a_number_or_a_text(ids: object) -> None:
    assert validate({**processing(), "skipFilesUsedBy": ids}) == []


def test_a_part_of_several_datasets_cannot_be_asked_for_yet() -> None:
    task = with_item({**processing(), "nFiles": 5}, 0, dataset="run.one,run.two")
    assert faults(task) == {("nFiles", "not_supported_yet")}


def test_pile_up_says_what_is_not_there_yet() -> None:
    assert faults(pile_up()) == {("jobParameters[1].expand", "not_supported_yet")}


def test_analysis_says_what_is_not_there_yet() -> None:
    found = faults(analysis())
    assert found == {
        ("transPath", "required"),
        ("buildSpec", "not_supported_yet"),
        ("jobParameters[0].value", "not_supported_yet"),
        ("jobParameters[4].expand", "not_supported_yet"),
        ("jobParameters[4].exclude", "not_supported_yet"),
    }


def test_event_service_says_what_is_not_there_yet() -> None:
    assert faults(event_service()) == {
        *((name, "not_supported_yet") for name in ("nEventsPerWorker", "nEsConsumers", "nJumboJobs")),
        ("inFilePosEvtNum", "not_supported_yet"),
        ("esmergeSpec", "not_supported_yet"),
        ("jobParameters[2].es_only", "not_supported_yet"),
    }


def test_nesting_without_end_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert any(p.rule == "depth" for p in validate({**processing(), "outputPostProcessing": deep}))


def test_a_body_that_is_wrong_throughout_is_answered_shortly() -> None:
    body: Params = {f"unknown{i}": i for i in range(2000)}
    body["jobParameters"] = [{f"key{j}": j for j in range(30)} for _ in range(2000)]
    found = validate(body)
    assert len(found) <= 501
    assert found[-1].rule == "more"


def many_inputs(n_items: int, n_names: int) -> list[Params]:
    return [template("input", ",".join(f"no.{i}.{j}" for j in range(n_names)), f"${{IN{i + 2}}}") for i in range(n_items)]


def test_a_task_has_a_largest_number_of_datasets() -> None:
    task = processing()
    task["jobParameters"] += many_inputs(10, 1000)
    document = read_task(task)
    assert [(p.field, p.rule) for p in document.problems] == [("jobParameters[11]", "range")]
    assert len(document.input_names) <= 10_000


def test_inputs_that_nobody_has_are_told_up_to_a_bound() -> None:
    task = processing()
    task["jobParameters"] += many_inputs(5, 1000)
    document = read_task(task)
    assert document.problems == ()
    refined = plan(document, task_id=1, user_name="eve", known={})
    assert isinstance(refined, TaskFaults)
    assert len(refined.problems) == 501
    assert refined.problems[-1].rule == "more"


def worst_bodies() -> Iterator[tuple[str, Params]]:
    """Bodies of the size that is allowed, each made so that one rule has as much to do as can be."""
    names = ",".join(f"d.{j}" for j in range(1000))
    outputs = [
        {"type": "template", "param_type": "output", "value": f"o{i}.${{MIDDLENAME}}.${{SN}}", "dataset": f"o{i}"}
        for i in range(900)
    ]
    read = {"type": "template", "param_type": "input", "value": "${IN}", "dataset": names}
    yield "named outputs", {"jobParameters": [read, *outputs], "addNthFieldToLFN": [1], "noInput": False}
    unknown = [{**read, "value": f"${{IN{i}}}", "dataset": names.replace("d.", f"d{i}.")} for i in range(100)]
    yield "unknown inputs", {"jobParameters": unknown, "noInput": False}
    yield "placeholders", {"jobParameters": [{"type": "constant", "value": f"${{A{i}}} " * 400} for i in range(1000)]}


@pytest.mark.parametrize(("kind", "changes"), list(worst_bodies()))
def test_the_worst_body_costs_a_bounded_time_and_a_bounded_answer(kind: str, changes: Params) -> None:
    params = {**generation(), **changes}
    began = time.process_time()
    document = read_task(params)
    problems = bounded([*document.problems, *check_inputs(document, None, {})])
    assert time.process_time() - began < 3
    assert 0 < len(problems) <= MOST_LISTED + 1
    assert sum(len(p.field) + len(p.message) for p in problems) < 300_000


def test_placeholders_that_nobody_knows_are_told_up_to_a_bound() -> None:
    task = processing()
    task["jobParameters"] += [constant(" ".join(f"${{U{i}_{j}}}" for j in range(1000))) for i in range(3)]
    problems = validate(task)
    assert len(problems) == 501
    assert problems[-1].rule == "more"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
item_keys = st.sampled_from(
    ["type", "param_type", "value", "dataset", "offset", "hidden", "padding", "ratio", "token", "x", "attributes", "eventRatio",
     "nFilesPerJob", "num_records", "sourceName", "pseudo", "random", "indexConsistent"]
)  # fmt: skip
item_words = st.sampled_from(
    [
        "constant",
        "template",
        "input",
        "output",
        "log",
        "number",
        "pseudo_input",
        "a.b",
        "c.d",
        "seq_number",
        "--o=${SN}",
        "${IN}",
        "${",
        "repeat,ratio=2",
        "--o=${MIDDLENAME}.${SN}",
        "${SEQNUMBER/M[#+1]}",
    ]
)
items = st.lists(st.dictionaries(item_keys, item_words | json_values, max_size=6), max_size=4)
arbitrary_tasks = st.dictionaries(st.sampled_from(sorted(TASK_PARAMETERS)) | st.text(max_size=8), json_values, max_size=12)


@settings(max_examples=60)
@given(arbitrary_tasks, items, items | json_values)
def test_no_json_makes_it_raise(params: Params, job_parameters: Any, log: Any) -> None:
    for body in (params, {**params, "jobParameters": job_parameters, "log": log}, {**processing(), **params}):
        document = read_task(body)
        assert all(p.rule and p.message for p in document.problems)
        refined = plan(document, task_id=1, user_name="eve", known={})
        assert isinstance(refined, TaskFaults | TaskWait) or not document.problems


def test_a_number_of_events_that_cannot_be_read_is_not_called_missing_too() -> None:
    faulty = validate({**generation(), "nEvents": "many"})
    assert [(p.field, p.rule) for p in faulty] == [("nEvents", "type")]
