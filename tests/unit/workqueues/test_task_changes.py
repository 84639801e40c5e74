"""The table of changes: its rows fit the machine of tasks, forms are read as REST reads, and which split rules may change."""

from __future__ import annotations

import pytest

from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.task.change_forms import form_fields, values_of_form, values_of_text
from workqueues.rules.task.changes import CHANGES, Change
from workqueues.rules.task.commands import COMMANDS
from workqueues.rules.task.split_changes import LETTERS, split_rule_after
from workqueues.rules.task_parameters import TASK_PARAMETERS, TaskParameters
from workqueues.states import TASK


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_has_states_of_the_machine_and_a_name_of_its_own(change: Change) -> None:
    assert change.states
    assert set(change.states) <= set(TASK.states)
    assert change.name not in COMMANDS


def test_the_states_are_those_of_the_facts() -> None:
    assert set(CHANGES["reassign"].states) == {
        "defined", "ready", "running", "scouting", "scouted", "pending", "assigning", "exhausted"
    }  # fmt: skip
    assert set(CHANGES["release"].states) == {"scouting", "pending", "running", "ready", "assigning", "defined"}
    assert set(CHANGES["tries"].states) - {"pending", "paused", "throttled"} == {"running", "scouting", "ready"}
    for name in ("priority", "share", "split-rule", "attributes"):
        taking = CHANGES[name].states
        assert {"defined", "running", "paused", "exhausted"} <= set(taking)
        assert not set(taking) & {"registered", "rerefine", "toretry", "aborting", "broken", "done"}


def test_where_it_rests_the_state_before_decides() -> None:
    tries = CHANGES["tries"]
    assert tries.suits("pending", "running")
    assert not tries.suits("pending", "defined")
    assert not tries.suits("exhausted", "running")


def test_needs_have_the_bounds_of_a_submission() -> None:
    asked = CHANGES["attributes"].asked.model_fields
    for name in ("ramCount", "walltime", "cpuTime", "coreCount"):
        assert asked[name].metadata == TaskParameters.model_fields[name].metadata, name


@pytest.mark.parametrize(
    ("text", "rule", "value", "after"),
    [
        ("NF=2,US=1", "nMaxFilesPerJob", 7, "NF=2,US=1,MF=7"),
        ("NF=2,US=1", "NF", 5, "NF=5,US=1"),
        ("NF=2,US=1", "NF", None, "US=1"),
        ("US=1,NF=2", "NF", 0, "US=1"),
        ("US=1,NF=2,AV=1", "NF", None, "US=1,AV=1"),
        ("NF=2", "NF", None, ""),
        ("", "avoidVP", True, "AV=1"),
        ("AV=1", "avoidVP", False, ""),
        ("US=1", "allowInputLAN", "only", "US=1,IL=2"),
        ("TW=3,US=1", "t1Weight", -1, "TW=-1,US=1"),
        ("US=1", "NF", None, "US=1"),
    ],
)
def test_one_rule_of_the_split_rule_changes(text: str, rule: str, value: object, after: str) -> None:
    assert split_rule_after(text, rule, value) == (after, [])
    assert parse(after) != parse(text) or after == text


@pytest.mark.parametrize(
    ("text", "rule", "value", "fault"),
    [
        ("", "nEventsPerJob", 7, ("rule", "choice")),
        ("", "NE", None, ("rule", "choice")),
        ("", "nMaxFilesPerJob", "x", ("value", "type")),
        ("", "allowInputLAN", "perhaps", ("value", "choice")),
        ("GB=3", "nFilesPerJob", 2, ("value", "contradiction")),
        ("MF=5", "nFilesPerJob", 20, ("value", "contradiction")),
        ("NF=20", "MF", 5, ("value", "contradiction")),
        ("X" * 199, "nFilesPerJob", 2, ("value", "length")),
    ],
)
def test_what_may_not_change_is_refused(text: str, rule: str, value: object, fault: tuple[str, str]) -> None:
    after, problems = split_rule_after(text, rule, value)
    assert (after, [(p.field, p.rule) for p in problems]) == (text, [fault])


def test_only_what_works_may_change_and_the_letters_are_those_of_a_submission() -> None:
    assert {"nFilesPerJob", "nGBPerJob", "nMaxFilesPerJob", "avoidVP", "allowInputLAN", "maxCoreCount"} <= set(LETTERS)
    assert all(TASK_PARAMETERS[name].supported for name in LETTERS)
    assert len(set(LETTERS.values())) == len(LETTERS)


@pytest.mark.parametrize(
    ("name", "form", "values"),
    [
        ("priority", {"priority": " 900 ", "comment": "soon"}, {"priority": 900, "comment": "soon"}),
        ("priority", {"priority": "soon"}, {"priority": "soon"}),
        ("priority", {"priority": ""}, {}),
        ("share", {"share": "12"}, {"share": "12"}),
        ("attributes", {"ramCount": "4000", "cpuTime": "2.5", "walltime": ""}, {"ramCount": 4000, "cpuTime": 2.5}),
        ("reassign", {"place": "site", "name": "", "jobs": "soft"}, {"site": "", "jobs": "soft"}),
        ("reassign", {"place": "nucleus", "name": "CERN"}, {"nucleus": "CERN"}),
        ("split-rule", {"rule": "avoidVP", "value": "true"}, {"rule": "avoidVP", "value": True}),
        ("split-rule", {"rule": "NF", "value": ""}, {"rule": "NF", "value": None}),
    ],
)
def test_what_stands_in_a_form_is_read(name: str, form: dict[str, str], values: dict[str, object]) -> None:
    assert values_of_form(CHANGES[name], {"csrfmiddlewaretoken": "x", **form}) == values


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("priority", "900", {"priority": 900}),
        ("priority", "", {}),
        ("attributes", "ramCount=4000 coreCount=8", {"ramCount": 4000, "coreCount": 8}),
        ("reassign", "site= jobs=nokill", {"site": "", "jobs": "nokill"}),
        ("split-rule", "rule=NF value=null", {"rule": "NF", "value": None}),
    ],
)
def test_one_line_is_read(name: str, text: str, values: dict[str, object]) -> None:
    assert values_of_text(CHANGES[name], text) == values


def test_a_form_has_a_field_for_each_value_and_asks_which_place() -> None:
    assert [f.name for f in form_fields(CHANGES["reassign"])] == ["place", "name", "jobs"]
    assert [f.name for f in form_fields(CHANGES["attributes"])] == ["ramCount", "walltime", "cpuTime", "coreCount"]
    assert form_fields(CHANGES["release"]) == []
