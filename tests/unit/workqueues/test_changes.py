"""Changed parameters of a task that is run again: which may change, what follows, and what two submissions differ in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import parameters, reading
from workqueues.rules.jobs.feeding import NewFile, by_name_fields
from workqueues.rules.jobs.split_rule import SplitRules, rewritten
from workqueues.rules.refine.changes import CHANGEABLE, change, differing
from workqueues.rules.task_parameters import TASK_PARAMETERS

OF_THE_DOCUMENT = {
    "site", "cloud", "includedSite", "excludedSite", "nFilesPerJob", "nGBPerJob", "nFiles", "nEvents", "ignoreMissingInDS",
}  # fmt: skip


def test_what_may_change_is_what_the_document_lists_and_never_how_events_were_cut() -> None:
    assert set(CHANGEABLE) <= set(TASK_PARAMETERS)
    assert set(CHANGEABLE) > OF_THE_DOCUMENT
    assert not {"nEventsPerJob", "nEventsPerInputFile", "tgtNumEventsPerJob", "jobParameters", "log", "taskName"} & set(
        CHANGEABLE
    )


@pytest.mark.parametrize(
    ("text", "before", "after", "rule"),
    [
        ("NF=2,US=3", "NF=2,US=2", "NF=5,US=2", "NF=5,US=3"),
        ("NF=2,US=3", "NF=2,US=2", "US=2", "US=3"),
        ("US=3", "US=2", "US=2,CC=8", "US=3,CC=8"),
        ("AN=1,2,NF=2", "AN=1,2,NF=2", "AN=1,2", "AN=1,2"),
        ("", "", "TW=-1", "TW=-1"),
        ("NF=2,NG=9", "NF=2,NG=4", "NF=3,NG=4", "NF=3,NG=9"),
    ],
)
def test_only_what_differs_is_written_into_a_split_rule(text: str, before: str, after: str, rule: str) -> None:
    assert rewritten(text, before, after) == rule


def test_columns_follow_where_the_parameters_differ_and_nowhere_else() -> None:
    params = reading("t", "in.data", site="ALPHA", cpuTime=5)
    asked = change(params, {"site": None, "ramCount": 900, "nFilesPerJob": 3, "cliParams": "run"}, "NF=2,US=3")
    assert not asked.problems
    assert asked.columns == {"site": "", "ram_count": 900, "split_rule": "NF=3,US=3"}
    assert asked.params == {
        **{k: v for k, v in params.items() if k != "site"},
        "ramCount": 900,
        "nFilesPerJob": 3,
        "cliParams": "run",
    }
    assert asked.sentence() == (
        "changed: site is taken away (was ALPHA), ramCount 900 (was 500), nFilesPerJob 3 (was 2), cliParams run"
    )


def test_a_rule_that_came_after_the_task_does_not_refuse_its_changes() -> None:
    params = {**parameters(), "somethingOld": 1}
    assert not change(params, {"nEvents": 80}, "").problems
    asked = change(params, {"nEvents": -1}, "")
    assert ("nEvents", "range") in {(p.field, p.rule) for p in asked.problems}
    assert "somethingOld" not in {p.field for p in asked.problems}


@pytest.mark.parametrize(
    ("more", "differences"),
    [
        ({}, {}),
        ({"nEvents": 80}, {"nEvents": 80}),
        ({"ramCount": None}, {"ramCount": None}),
        ({"nFiles": None, "noEmail": False}, {}),
        ({"uniqueTaskName": True, "allowTaskDuplication": True, "userName": None}, {}),
        ({"architecture": None}, {}),
        ({"jobParameters": []}, {"jobParameters": []}),
    ],
    ids=["the same", "more events", "left out", "said as its default", "of the submission", "empty", "other items"],
)
def test_two_bodies_differ_where_they_mean_something_else(more: dict[str, Any], differences: dict[str, Any]) -> None:
    assert differing(parameters(), parameters(**more)) == differences


def test_middle_names_keep_their_boundaries_when_others_come() -> None:
    rules = SplitRules(name_fields=(1,), fields_of_file=True, boundary=1)
    known = by_name_fields([NewFile("b.1"), NewFile("c.1")], rules)
    assert [f.boundary_id for f in known] == [1, 2]
    assert [f.boundary_id for f in by_name_fields([NewFile("a.1"), NewFile("c.2"), NewFile("b.2")], rules, known)] == [3, 2, 1]
