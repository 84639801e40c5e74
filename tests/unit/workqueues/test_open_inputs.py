"""Which inputs a task follows, and how many new files are given to jobs at once."""

from __future__ import annotations

import pytest

from workqueues.rules.jobs.open_inputs import (
    COLLECTED,
    GROWING_BLOCK,
    bunch,
    followed,
    growing_blocks,
    held_at_first,
    let_go,
    still_open,
    waiting,
)
from workqueues.rules.jobs.split_rule import parse

STATES = {"a": "open", "b": "closed", "c": "open"}


@pytest.mark.parametrize(
    ("rule", "written", "names"),
    [
        ("", {"a", "b"}, set()),
        ("RC=1", set(), {"a", "c"}),
        ("RC=1", {"b"}, {"a", "c"}),
        ("NW=1", {"b", "x"}, {"b"}),
        ("NW=1,RC=1", {"b"}, {"a", "b", "c"}),
        ("WH=1", set(), {"a", "b", "c"}),
    ],
)
def test_inputs_are_followed_that_are_open_or_that_a_parent_still_writes(rule: str, written: set[str], names: set[str]) -> None:
    assert followed(parse(rule), STATES, written) == names


@pytest.mark.parametrize(
    ("rule", "n"),
    [
        ("NW=1", 20),
        ("NW=1,NF=5", 100),
        ("NW=1,NT=3,NF=5", 15),
        ("NW=1,NI=1,NT=3,NF=5", 5),
        ("NW=1,MF=2,NT=3", 6),
        ("NW=1,US=2,NU=10,NF=5", 50),
    ],
)
def test_new_files_are_collected_for_as_many_jobs_as_the_task_waits_for(rule: str, n: int) -> None:
    assert bunch(parse(rule), 20) == n


def test_whole_bunches_are_let_go_and_all_when_no_more_come() -> None:
    assert [let_go(n, 10, growing=True) for n in (9, 10, 25)] == [0, 10, 20]
    assert let_go(25, 10, growing=False) == 25


def test_only_files_of_running_parents_are_collected_and_those_that_are_staged_wait_for_that() -> None:
    assert held_at_first(parse("NW=1")) == COLLECTED
    assert held_at_first(parse("RC=1")) == held_at_first(parse("NW=1,IS=1")) == ""


def test_a_lumi_block_is_complete_once_a_later_one_is_there_and_nothing_came_to_it_lately() -> None:
    assert growing_blocks({1, 2, 3}, {2}) == {2, 3}
    assert growing_blocks({1, None}, {None}) == {1}
    assert growing_blocks(set(), set()) == growing_blocks({None}, {None}) == frozenset()
    assert held_at_first(parse("RC=1,RP=1")) == held_at_first(parse("NW=1,RP=1")) == GROWING_BLOCK
    assert held_at_first(parse("RC=1,RP=1,IS=1")) == "", "it is staged first"


def test_what_is_waited_for_is_named() -> None:
    assert still_open(["a"]) == "a is still open, and new files are looked for"
    assert still_open(list("abcde")) == "a, b, c and 2 more are still open, and new files are looked for"
    assert still_open(["a"], held_up=True) == (
        "new files of a are looked for until somebody says that the input is complete (workflowHoldup)"
    )
    assert waiting(["pseudo_dataset"]).startswith("all rounds so far are through")
