"""The conformance runner: what it says, what it counts, and that nothing passes unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker_site.roof.conformance.cases import BadCases, Case, alike, differences, read_cases
from broker_site.roof.conformance.registry import FAMILIES
from broker_site.roof.conformance.runner import failure, main, not_yet, run_cases

Write = Callable[[Any], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows as a file of cases; its path."""

    def written(rows: Any) -> str:
        path = tmp_path / "cases.json"
        path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
        return str(path)

    return written


def case(family: str = "timeout", expect: Any = None, **given: Any) -> dict[str, Any]:
    return {"id": "X-1", "family": family, "given": given, "expect": expect or {"timeout_h": 4}, "note": ""}


def said(path: str) -> tuple[int, list[str]]:
    lines: list[str] = []
    return main([path], lines.append), lines


def test_a_passing_case_is_counted(write: Write) -> None:
    assert said(write([case(state="defined")])) == (0, ["1 passed, 0 failed"])


def test_a_failing_case_has_a_line_and_the_exit_code(write: Write) -> None:
    code, lines = said(write([case(state="assigned")]))
    assert (code, lines[-1]) == (1, "0 passed, 1 failed")
    assert lines[0] == "X-1 (timeout) FAILED timeout_h: 12.0, expected 4"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (case("gardening", state="defined"), "not known"),
        (case(state="defined", colour="red"), "takes these keys"),
        (case(expect={"colour": 4}, state="defined"), "takes these keys"),
        (case(state="running", event="heartbeat", hb="x"), "raised AttributeError"),
    ],
    ids=["unknown family", "unknown key given", "unknown key expected", "wrong type"],
)
def test_what_no_function_can_answer_fails(write: Write, row: dict[str, Any], says: str) -> None:
    code, lines = said(write([row]))
    assert code == 1
    assert says in lines[0]


def test_a_family_that_is_not_due_is_left_out_and_counted_apart() -> None:
    report = run_cases(
        [Case("X-1", "jumbo", {}, {"x": 1}), Case("X-2", "timeout", {"state": "defined"}, {"timeout_h": 4})], ["jumbo"]
    )
    assert report.lines() == ["1 not yet: jumbo 1", "1 passed, 0 failed"]


@pytest.mark.parametrize("rows", ["{", {"id": "X"}, [{"id": "X"}], [case() | {"expect": {}}], [case(), case()], [7]])
def test_a_file_without_proper_cases_is_refused(write: Write, rows: Any) -> None:
    path = write(rows)
    with pytest.raises(BadCases, match=r"cases\.json"):
        read_cases(Path(path))
    assert said(path)[0] == 2


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        (1.0, 1.0000009, True),
        (1.0, 1.0000011, False),
        (0, 1e-10, True),
        (1, True, False),
        (None, 0, False),
        ([1, 2], (1, 2), True),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [1]}, {"a": [1.0]}, True),
        ("1", 1, False),
    ],
)
def test_how_answers_are_compared(wanted: Any, found: Any, same: bool) -> None:
    assert alike(wanted, found) is same


def test_lists_under_some_keys_are_sets() -> None:
    expected = Case("X", "f", {}, {"queues": ["a", "b"], "partition": [["1", "2"], ["3"]], "order": ["a", "b"]})
    assert (
        differences(expected, {"queues": ["b", "a", "a"], "partition": [{"3"}, ["2", "1"]], "order": ["a", "b"], "more": 1}) == []
    )
    assert len(differences(expected, {"queues": ["a"], "partition": [["1", "2", "3"]], "order": ["b", "a"]})) == 3


def test_a_tolerance_that_is_given_is_absolute() -> None:
    expected = Case("X", "f", {"tolerance": 0.05}, {"probability": {"a": 0.5}})
    assert differences(expected, {"probability": {"a": 0.54}}) == []
    assert differences(expected, {"probability": {"a": 0.56}})


def test_no_family_that_has_its_function_is_left_out() -> None:
    listed = not_yet()
    assert not FAMILIES.keys() & listed.keys()
    assert all(rows for rows in listed.values()), "every family names its rows"


def test_an_answer_is_never_made_up() -> None:
    assert failure(Case("X", "retry_attempts", {"attempt": 3, "max_attempt": 3}, {"retry": True}))
