"""Several items of one dataset: what they say of it must be the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import parameters, reading
from workqueues.rules.refine import validate
from workqueues.rules.refine.name_shapes import may_meet


def outputs(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    item = {"type": "template", "param_type": "output", "dataset": "o.OUT"}
    return parameters(
        jobParameters=[{**item, "value": "--a=o.A.${SN}", **first}, {**item, "value": "--b=o.B.${SN}", **second}], log=None
    )


def faults(params: dict[str, Any]) -> list[tuple[str, str]]:
    return [(p.field, p.rule) for p in validate(params)]


@pytest.mark.parametrize("key", ["container", "token"])
def test_later_items_say_the_same_of_a_dataset_or_nothing(key: str) -> None:
    assert faults(outputs({key: "one"}, {key: "two"})) == [(f"jobParameters[1].{key}", "contradiction")]
    assert faults(outputs({}, {key: "two"})) == [(f"jobParameters[1].{key}", "contradiction")]
    assert faults(outputs({key: "one"}, {key: "one"})) == []
    assert faults(outputs({key: "one"}, {})) == []


@pytest.mark.parametrize("key", ["container", "token"])
def test_the_same_holds_of_inputs(key: str) -> None:
    item = {"type": "template", "param_type": "input", "dataset": "in.data", "value": "${IN}"}
    out = {"type": "template", "param_type": "output", "dataset": "t.OUT", "value": "--out=t.${SN}"}
    params = reading("t", "in.data", jobParameters=[{**item, key: "one"}, {**item, key: "two"}, out])
    assert faults(params) == [(f"jobParameters[1].{key}", "contradiction")]


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("t.A.${SN}.root", "t.B.${SN}.root", False),
        ("t.${SN}.A.root", "t.${SN}.B.root", False),
        ("t.${SN}.root", "t.${SN/P}.root", True),
        ("t.${SN}", "t.0${SN}", True),
        ("t.root", "t.root.${SN}", True),
        ("t.root", "u.root", False),
        ("t.$JEDITASKID.${SN}.x", "t.${SN}.$JEDITASKID.x", True),
        ("t.${SN}.$JEDITASKID.x", "t.${SN}.y", False),
    ],
)
def test_templates_meet_unless_their_names_begin_or_end_differently(one: str, other: str, meet: bool) -> None:
    assert may_meet(one, other) == may_meet(other, one) == meet
