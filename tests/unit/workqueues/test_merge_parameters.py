"""What a task may say of merging its outputs, what it becomes, and the command lines of merge jobs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.workqueues.examples import Params, generation, template
from workqueues.rules.jobs.event_ranges import Outcome
from workqueues.rules.jobs.job_parameters import JobFill, fill
from workqueues.rules.jobs.merge_parameters import DEFAULT, merge_template
from workqueues.rules.jobs.merge_tries import MergeVerdict, merge_verdict
from workqueues.rules.jobs.placeholders import MalformedText
from workqueues.rules.refine import TaskPlan, plan, read_task
from workqueues.rules.refine.validate import validate

STREAMS = ("OUTPUT0", "OUTPUT1", "LOG0")
FILES = {
    "TRN_OUTPUT0": ["um.b", "um.a"], "TRN_OUTPUT1": ["um.c"], "TRN_LOG0": ["um.l1", "um.l2"], "OUTPUT0": ["ab"],
    "OUTPUT1": ["c"], "LOG0": ["l"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "absent", "expected"),
    [
        (DEFAULT, (), "um.a,um.b:ab um.c:c"),
        (DEFAULT, ("OUTPUT1",), "um.a,um.b:ab"),
        (DEFAULT, ("OUTPUT0", "OUTPUT1"), ""),
        ("-o ${TRN_OUTPUT0:OUTPUT0} -l ${TRN_LOG:LOG}", (), "-o um.a,um.b:ab -l um.l1,um.l2:l"),
        ("--in ${TRN_OUTPUT0/L} --out ${OUTPUT0} -n ${SN}", (), "--in um.a,um.b --out ab -n 7"),
        ("${TRN_OUTPUT/S} ${OUTPUT/L}", (), "um.a um.b um.c ab,c"),
    ],
)
def test_the_command_line_of_a_merge_job(text: str, absent: tuple[str, ...], expected: str) -> None:
    assert fill(merge_template(text, STREAMS, absent), JobFill(1, serial=7, streams=FILES)).strip() == expected


@pytest.mark.parametrize("text", ["${TRN_OUTPUT0:OUTPUT1}", "${TRN_OUTPUT:LOG}", "${TRN_OUTPUT5:OUTPUT5}", "${TRN_OUTPUT0:LOG0}"])
def test_a_pair_is_of_one_stream_of_the_task(text: str) -> None:
    with pytest.raises(MalformedText):
        merge_template(text, STREAMS)


@pytest.mark.parametrize(
    ("outcome", "tries", "about", "verdict"),
    [
        ("finished", 0, {}, "merged"),
        ("finished", 2, {}, "merged"),
        ("failed", 0, {}, "again"),
        ("failed", 1, {}, "again"),
        ("failed", 2, {}, "given_up"),
        ("returned", 0, {}, "again"),
        ("returned", 2, {}, "given_up"),
        ("returned", 2, {"faultless": True}, "kept"),
        ("untried", 2, {}, "kept"),
        ("returned", 0, {"killed": True}, "given_up"),
    ],
)
def test_what_becomes_of_a_file_after_a_try_to_merge_it(
    outcome: Outcome, tries: int, about: dict[str, bool], verdict: MergeVerdict
) -> None:
    assert merge_verdict(outcome, tries, 3, **about) == verdict


def merging(**more: Any) -> Params:
    return {**generation(), "mergeOutput": True, **more}


def faults(params: Params) -> set[tuple[str, str]]:
    return {(problem.field, problem.rule) for problem in validate(params)}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, set()),
        ({"nFilesPerMergeJob": 5, "nMaxFilesPerMergeJob": 10, "nGBPerMergeJob": 2, "nEventsPerMergeJob": 1000}, set()),
        ({"mergeCoreCount": 2, "mergeRamCount": 3000, "umNameAtEnd": True}, set()),
        ({"mergeSpec": {"transPath": "merge.py", "jobParameters": "${TRN_OUTPUT0/L} ${OUTPUT0}"}}, set()),
        ({"mergeSpec": {"useLocalIO": 1}}, set()),
        ({"mergeOutput": False, "nFilesPerMergeJob": 5}, {("nFilesPerMergeJob", "contradiction")}),
        ({"mergeOutput": False, "mergeSpec": {"transPath": "x"}}, {("mergeSpec", "contradiction")}),
        ({"nFilesPerMergeJob": 11, "nMaxFilesPerMergeJob": 10}, {("nFilesPerMergeJob", "contradiction")}),
        ({"nFilesPerMergeJob": 1001}, {("nFilesPerMergeJob", "range")}),
        ({"mergeSpec": {"transpath": "x"}}, {("mergeSpec.transpath", "unknown")}),
        ({"mergeSpec": {"transPath": "merge.py"}}, {("mergeSpec.jobParameters", "required")}),
        ({"mergeSpec": {"transPath": "../m", "jobParameters": "${OUTPUT0}"}}, {("mergeSpec.transPath", "format")}),
        ({"mergeSpec": {"jobParameters": 5}}, {("mergeSpec.jobParameters", "type")}),
        ({"mergeSpec": {"jobParameters": "${IN}"}}, {("mergeSpec.jobParameters", "template")}),
        ({"mergeSpec": {"jobParameters": "${RNDMSEED}"}}, {("mergeSpec.jobParameters", "template")}),
        ({"mergeSpec": {"jobParameters": "${TRN_OUTPUT3:OUTPUT3}"}}, {("mergeSpec.jobParameters", "template")}),
        ({"mergeSpec": {"jobParameters": "--nothing"}}, {("mergeSpec.jobParameters", "template")}),
        ({"instantiateTmpl": True}, {("instantiateTmpl", "not_supported_yet")}),
    ],
)
def test_what_a_task_may_say_of_merging(more: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert faults(merging(**more)) == expected


def test_names_leave_room_for_those_of_the_files_before_the_merge() -> None:
    task = merging()
    task["jobParameters"][4]["dataset"] = "d" * 250
    task["jobParameters"][4]["value"] = "--out=" + "f" * 244 + "${SN}"
    assert faults({**task, "mergeOutput": False}) == set()
    assert faults(task) == {("jobParameters[4].dataset", "length"), ("jobParameters[4].value", "length")}


def test_an_output_that_jobs_may_leave_out_is_named_by_a_pair() -> None:
    task = merging(mergeSpec={"jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_OUTPUT1/L}"})
    task["jobParameters"].append({**template("output", "x.HIST", "--hist=x.HIST.${SN}"), "allowNoOutput": True})
    assert faults(task) == {("mergeSpec.jobParameters", "template")}
    assert faults({**task, "mergeSpec": {"jobParameters": "${TRN_OUTPUT:OUTPUT}"}}) == set()


@pytest.mark.parametrize(("at_end", "name"), [(False, "panda.um.mc26.gen.boson.EVT"), (True, "mc26.gen.boson.EVT.panda.um")])
def test_a_task_that_merges_has_a_hidden_dataset_for_each_output_and_log(at_end: bool, name: str) -> None:
    task = plan(read_task(merging(umNameAtEnd=at_end)), task_id=17, user_name="eve", known={})
    assert isinstance(task, TaskPlan)
    assert [(d.name, d.type, d.stream_name, d.storage_token) for d in task.datasets[2:5]] == [
        ("mc26.gen.boson.EVT", "output", "OUTPUT0", "DATADISK"),
        ("mc26.gen.boson.log", "log", "LOG0", ""),
        (name, "trn_output", "TRN_OUTPUT0", ""),
    ]
    assert [(t.dataset_index, t.filename_template, t.stream_name, t.out_type) for t in task.templates] == [
        (2, "mc26.gen.boson.EVT.${SN}.root", "OUTPUT0", "output"),
        (3, "mc26.gen.boson.log.${SN}.tgz", "LOG0", "log"),
        (4, "um.mc26.gen.boson.EVT.${SN}.root", "TRN_OUTPUT0", "trn_output"),
        (5, "um.mc26.gen.boson.log.${SN}.tgz", "TRN_LOG0", "trn_log"),
    ]


LOG = template("log", "mc26.gen.boson.mlog", "mc26.gen.boson.mlog.${SN}.tgz")
SUMMARY = {**template("output", "mc26.gen.boson.SUM", "--sum=mc26.gen.boson.SUM.${SN}.txt"), "mergeOnly": True}


def with_items(task: Params, *items: Params) -> Params:
    return {**task, "jobParameters": [*task["jobParameters"], *items]}


def test_what_only_merge_jobs_write_has_no_files_before_the_merge_and_is_not_on_the_command_line_of_others() -> None:
    spec = {"jobParameters": "${TRN_OUTPUT0:OUTPUT0} --sum ${OUTPUT1} ${TRN_LOG:LOG}"}
    params = with_items(merging(log_merge=LOG, mergeSpec=spec), SUMMARY)
    assert faults(params) == set()
    task = plan(read_task(params), task_id=17, user_name="eve", known={})
    assert isinstance(task, TaskPlan)
    assert "SUM" not in task.job_parameters
    assert [(d.name, d.type, d.stream_name) for d in task.datasets[2:]] == [
        ("mc26.gen.boson.EVT", "output", "OUTPUT0"),
        ("mc26.gen.boson.SUM", "output", "OUTPUT1"),
        ("mc26.gen.boson.log", "log", "LOG0"),
        ("mc26.gen.boson.mlog", "log", "LOG_MERGE"),
        ("panda.um.mc26.gen.boson.EVT", "trn_output", "TRN_OUTPUT0"),
        ("panda.um.mc26.gen.boson.log", "trn_log", "TRN_LOG0"),
    ]
    assert [(t.stream_name, t.out_type) for t in task.templates] == [
        ("OUTPUT0", "output"), ("OUTPUT1", "output"), ("LOG0", "output"), ("LOG_MERGE", "log"), ("TRN_OUTPUT0", "trn_output"),
        ("TRN_LOG0", "trn_log"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (with_items(merging(), SUMMARY), {("jobParameters[5].mergeOnly", "contradiction")}),
        (with_items(generation(), SUMMARY), {("jobParameters[5]", "contradiction")}),
        ({**generation(), "log_merge": LOG}, {("log_merge", "contradiction")}),
        (merging(log_merge=[LOG]), {("log_merge", "type")}),
        (merging(log_merge={**LOG, "dataset": ""}), {("log_merge.dataset", "required")}),
        (merging(log={**LOG, "mergeOnly": True}), {("log.mergeOnly", "contradiction")}),
        (
            with_items(merging(mergeSpec={"jobParameters": "${OUTPUT0} ${TRN_OUTPUT1/L} ${OUTPUT1}"}), SUMMARY),
            {("mergeSpec.jobParameters", "template")},
        ),
        (
            with_items(merging(log_merge=LOG, mergeSpec={"jobParameters": "${OUTPUT0}"})),
            {("mergeSpec.jobParameters", "template")},
        ),
    ],
)
def test_what_only_merge_jobs_write_must_be_written_by_them(params: Params, expected: set[tuple[str, str]]) -> None:
    assert faults(params) == expected
