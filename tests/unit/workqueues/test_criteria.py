"""Criteria: what the language takes, what it says of a task, and what it answers to a mistake."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.work_queues.criteria import BadCriteria, holds, parse, read_variables
from workqueues.rules.work_queues.criteria.expression import Truth, truth
from workqueues.rules.work_queues.criteria.parse import BadVariables, variables_of

TASK = {"processingtype": "simul", "workinggroup": "GP_HIGGS", "corecount": 8, "campaign": None}


@pytest.mark.parametrize(
    ("text", "variables", "said"),
    [
        ("processingType IN (:p1,:p2)", "p1:evgen,p2:simul", True),
        ("processingType IN (:p1)", "p1:evgen", False),
        ("processingType NOT IN (:p1)", "p1:evgen", True),
        ("campaign IN ('a')", "", None),
        ("campaign NOT IN ('a')", "", None),
        ("PROCESSINGTYPE = :p", "p:simul", True),
        ("processingType = :p", "p:Simul", False),
        ("workingGroup LIKE :p1", "p1:GP_%", True),
        ("workingGroup LIKE 'GP\\_%'", "", True),
        ("workingGroup LIKE 'GPx%'", "", False),
        ("workingGroup LIKE 'AP\\_%' or coreCount > :n", "n:1", True),
        ("workingGroup NOT LIKE 'GP%'", "", False),
        ("coreCount >= 8 AND coreCount <= 8.0", "", True),
        ("coreCount <> 8", "", False),
        ("coreCount != '9'", "", True),
        ("coreCount = 'eight'", "", None),
        ("coreCount < :n", "n:10", True),
        ("campaign = 'x' OR campaign IS NULL", "", True),
        ("campaign IS NOT NULL", "", False),
        ("NOT campaign = 'x'", "", None),
        ("NOT (processingType = 'x') AND (campaign > 'a' OR campaign IS NULL)", "", True),
        ("campaign = 'x' AND processingType = 'evgen'", "", False),
        ("processingType = 'it''s'", "", False),
        ("processingType = 'a' OR processingType = 'simul' AND coreCount = 1", "", False),
        ("unknown = 1", "", None),
    ],
)
def test_a_task_against_criteria(text: str, variables: str, said: Truth) -> None:
    expression = parse(text, read_variables(variables))
    assert expression is not None
    assert truth(expression, TASK) is said
    assert holds(expression, TASK) is (said is True)


def test_no_criteria_take_everything() -> None:
    for text in (None, "", "  "):
        assert holds(parse(text), {})


@pytest.mark.parametrize(
    ("text", "position", "expected", "found"),
    [
        ("processingType", 15, "=, <>, <, <=, >, >=, IN, LIKE, NOT or IS", "the end"),
        ("processingType = ", 18, "a :variable, a 'text' or a number", "the end"),
        ("processingType == 'a'", 17, "a :variable, a 'text' or a number", "'='"),
        ("(coreCount = 1", 15, "')'", "the end"),
        ("coreCount = 1)", 14, "AND, OR or the end", "')'"),
        ("coreCount IN 1", 14, "'('", "'1'"),
        ("coreCount IN ()", 15, "a :variable, a 'text' or a number", "')'"),
        ("coreCount NOT 1", 15, "LIKE or IN", "'1'"),
        ("coreCount IS 1", 14, "NULL or NOT NULL", "'1'"),
        ("coreCount = :n", 13, "a variable with a value (there are: p)", ":n"),
        ("coreCount = 1; DROP TABLE task", 14, "an attribute, value or sign", "'; DROP TAB'"),
        ("processingType = 'open", 18, "an attribute, value or sign", '"\'open"'),
        ("coreCount = 1 coreCount = 2", 15, "AND, OR or the end", "'coreCount'"),
        ("AND", 1, "an attribute, NOT or '('", "'AND'"),
        ("__import__('os')", 11, "=, <>, <, <=, >, >=, IN, LIKE, NOT or IS", "'('"),
        ("(" * 60 + "a = 1" + ")" * 60, 51, "at most 50 brackets and NOTs inside each other", "more"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, position: int, expected: str, found: str) -> None:
    with pytest.raises(BadCriteria) as error:
        parse(text, {"p": "x"})
    assert (error.value.position, error.value.expected, error.value.found) == (position, expected, found)


def test_variables() -> None:
    assert read_variables("p1:GP_%, p2:a:b,p3:x\\,y") == {"p1": "GP_%", "p2": "a:b", "p3": "x,y"}
    assert read_variables(None) == {}
    assert variables_of("a IN (:x,:y) OR b = :x") == ["x", "y"]
    for text, why in (
        ("p1", "expected name:value, found 'p1'"),
        ("p1:a,p1:b", "p1 has two values"),
        ("1:a", "expected name:value"),
    ):
        with pytest.raises(BadVariables, match=why):
            read_variables(text)


@given(st.text("ab", max_size=6), st.text("ab%_", max_size=6))
def test_a_pattern_takes_what_some_reading_of_its_signs_takes(text: str, pattern: str) -> None:
    def takes(text: str, pattern: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "%":
            return any(takes(text[skipped:], pattern[1:]) for skipped in range(len(text) + 1))
        return bool(text) and pattern[0] in ("_", text[0]) and takes(text[1:], pattern[1:])

    assert holds(parse(f"a LIKE '{pattern}'"), {"a": text}) is takes(text, pattern)


def test_many_wildcards_are_answered_at_once() -> None:
    criteria = parse("taskName LIKE '" + "%a" * 60 + "%b'")
    began = time.process_time()
    assert not holds(criteria, {"taskname": "a" * 500})
    assert time.process_time() - began < 2


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        expression = parse(text)
    except BadCriteria as error:
        assert 1 <= error.position <= len(text) + 1
    else:
        assert expression is None or truth(expression, TASK) in (True, False, None)


@given(st.text("ab%_\\", max_size=8), st.text("ab%_\\", max_size=8))
def test_a_text_is_like_itself_when_its_signs_are_escaped(text: str, other: str) -> None:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    expression = parse("a LIKE :p", {"p": escaped})
    assert holds(expression, {"a": text})
    assert holds(expression, {"a": other}) is (text == other)
