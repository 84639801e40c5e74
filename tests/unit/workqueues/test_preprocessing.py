"""The step of a task before all others: what may be said of it, its rows, and what its result does to the parameters."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workqueues.examples import Params, generation, template
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import TaskFaults, TaskPlan, plan, plan_step, read_task, read_unfilled, step_due
from workqueues.rules.refine.filling import FIXED, MOST_BYTES, fill
from workqueues.rules.task.finish import DatasetCounts, final_status

SPEC = {"transPath": "choose.py", "jobParameters": "--task $JEDITASKID --try ${ATTEMPTNR}"}


def task(**more: Any) -> Params:
    params = generation() | {"prodSourceLabel": "user", "taskType": "anal", "taskPriority": 500, "preproSpec": SPEC}
    return {name: value for name, value in {**params, **more}.items() if value is not None}


def faults(**more: Any) -> dict[str, str]:
    return {p.field: p.rule for p in read_unfilled(task(**more)).problems}


@pytest.mark.parametrize(
    ("value", "values", "after"),
    [
        ("X", {"X": "y"}, "y"),
        ("aX", {"X": "y"}, "aX"),
        ("X", {"X": 20}, 20),
        (["a", "X", ["X"]], {"X": {"k": "X"}}, ["a", {"k": "X"}, [{"k": "X"}]]),
        ({"X": "X", "b": {"c": [{"d": "Y"}]}}, {"X": 1, "Y": "X"}, {"X": 1, "b": {"c": [{"d": "X"}]}}),
        (5, {"5": 6}, 5),
        ("X", {"X": None}, None),
    ],
)
def test_a_text_that_is_equal_to_a_name_is_replaced_at_any_depth(value: object, values: dict[str, Any], after: object) -> None:
    filled = fill({"p": value, "preproSpec": {"transPath": "X"}}, values)
    assert filled.params == {"p": after, "preproSpec": {"transPath": "X"}}
    assert filled.problems == ()


JSON = st.recursive(st.none() | st.integers() | st.sampled_from("abc"), lambda x: st.lists(x) | st.dictionaries(st.text(), x))


@given(JSON)
def test_nothing_but_equal_texts_changes(value: Any) -> None:
    assert fill({"p": value}, {"z": 1}).params == {"p": value}
    renamed = fill({"p": value}, {"a": "A", "b": "B", "c": "C"})
    assert fill(renamed.params, {"A": "a", "B": "b", "C": "c"}).params == {"p": value}


def test_it_is_told_what_was_filled_in_and_what_nobody_asked_for() -> None:
    filled = fill({"nFiles": "N", "jobParameters": [{"dataset": "IN"}]}, {"N": 3, "IN": "mc.a", "OUT": "mc.b"})
    assert filled.sentence() == "filled in: nFiles 3 (was N), jobParameters[0].dataset mc.a (was IN); no parameter is OUT"
    assert fill({"a": "b"}, {}).sentence() == "nothing to fill in"


def test_what_needs_a_right_is_not_filled_in_and_no_more_than_a_task_can_hold() -> None:
    assert [p.field for p in fill({"vo": "X", "taskName": "t"}, {"X": "atlas"}).problems] == ["vo"]
    large = fill({"jobParameters": ["X"] * 1000}, {"X": "y" * 2000})
    assert [p.rule for p in large.problems] == ["length"]
    assert sum(len(value) for value in large.params["jobParameters"]) < MOST_BYTES + 4000


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {}),
        ({"nEvents": "N", "ramUnit": "UNIT", "nEventsPerJob": "EACH"}, {}),
        ({"nEventsPerJob": None, "nEvents": "N"}, {}),
        ({"taskPriority": "P"}, {"taskPriority": "type"}),
        ({"nEventsPerJobb": "N"}, {"nEventsPerJobb": "unknown"}),
        ({"transPath": None, "nEvents": "N"}, {"transPath": "required"}),
        ({"nEvents": [3]}, {"nEvents": "type"}),
        ({"prodSourceLabel": "managed"}, {"preproSpec": "contradiction"}),
        ({"preproSpec": {"jobParameters": "a"}}, {"preproSpec.transPath": "required"}),
        ({"preproSpec": {"transPath": "../a", "more": 1}}, {"preproSpec.transPath": "format", "preproSpec.more": "unknown"}),
        ({"preproSpec": {"transPath": 5}}, {"preproSpec.transPath": "type"}),
        ({"preproSpec": {"transPath": "a", "jobParameters": "${IN}"}}, {"preproSpec.jobParameters": "template"}),
        ({"preproSpec": "a"}, {"preproSpec": "type"}),
    ],
)
def test_what_a_task_may_say_before_its_step(more: Params, expected: dict[str, str]) -> None:
    assert faults(**more) == expected


def test_afterwards_all_must_be_right() -> None:
    params = task(nEvents="N", nEventsPerJob="EACH")
    assert {p.field for p in read_task(params).problems} >= {"nEvents", "nEventsPerJob"}
    whole = plan(read_task(dict(fill(params, {"N": 100, "EACH": 10}).params)), task_id=7, user_name="ada", known={})
    assert isinstance(whole, TaskPlan)
    assert parse(str(whole.columns["split_rule"])).preprocessing == 3
    assert not step_due(params, str(whole.columns["split_rule"]))


def test_the_step_is_one_job_of_one_core_with_three_tries_and_keeps_what_says_where_it_may_run() -> None:
    more = {"coreCount": 8, "ramCount": 4001, "ramUnit": "MB", "cpuTime": 5, "includedSite": ["A"], "nFilesPerJob": 3}
    step = plan_step(read_unfilled(task(**more, nEvents="N")), task_id=7, attempt_nr=2)
    assert isinstance(step, TaskPlan)
    columns = step.columns
    assert (columns["core_count"], columns["ram_count"], columns["trans_path"]) == (1, 501, "choose.py")
    assert {"cpu_time", "user_name", "req_id"}.isdisjoint(columns), "the owner is the caller, whom the parameters need not name"
    assert columns["split_rule"] == "UP=1,LS=1"
    assert step_due(task(), "UP=1")
    assert step_due(task(), "")
    assert not step_due(task(preproSpec=None), "")
    assert (step.max_attempt, step.job_parameters) == (3, SPEC["jobParameters"])
    assert [(d.name, d.type) for d in step.datasets] == [("panda.pp.in.7.2", "pseudo_input"), ("panda.pp.log.7", "log")]
    assert isinstance(plan_step(read_unfilled(task(nEvents=[])), task_id=7), TaskFaults)
    without_log = plan_step(read_unfilled(task(log=None, ramUnit="MBPerCore", ramCount=900, coreCount=8)), task_id=7)
    assert isinstance(without_log, TaskPlan)
    assert (len(without_log.datasets), without_log.templates, without_log.columns["ram_count"]) == (1, (), 900)


def test_the_label_of_another_system_is_noted() -> None:
    step = plan_step(read_unfilled(task(preproSpec={**SPEC, "prodSourceLabel": "panda"})), task_id=7)
    assert isinstance(step, TaskPlan)
    assert [note.field for note in step.notes] == ["preproSpec.prodSourceLabel"]


@pytest.mark.parametrize(
    ("status", "ok", "failed", "reason"),
    [
        ("prepared", 0, 1, "its preprocessing job failed"),
        ("passed", 0, 1, "it ended before its preprocessing step was over"),
        ("passed", 1, 0, "it ended before its preprocessing step was over"),
    ],
)
def test_a_task_that_ends_in_its_step_has_failed(status: str, ok: int, failed: int, reason: str) -> None:
    dataset = DatasetCounts("pseudo_input", "done", n_files=1, n_files_finished=ok, n_files_failed=failed)
    assert final_status(status, [dataset], in_step=True) == ("failed", reason)
    assert final_status("aborting", [dataset], in_step=True).status == "aborted"


def test_the_example_of_the_manual_is_right_before_its_step_and_after_it() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "fill-in-parameters.md").read_text(encoding="utf-8")
    params = json.loads(page.partition("```json")[2].partition("```")[0])
    assert read_unfilled(params).problems == ()
    found = ast.literal_eval(page.partition("found = ")[2].partition("\n")[0])
    assert read_task(dict(fill(params, found).params)).problems == ()
    assert all(f"`{name}`" in page for name in FIXED)


def test_outputs_may_have_names_that_are_filled_in() -> None:
    outputs = [template("output", "OUT_DS", "--out=NAME.${SN}.txt")]
    assert faults(jobParameters=outputs, noInput=True) == {}
