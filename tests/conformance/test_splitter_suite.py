"""The conformance suite of splitters: all of ours pass it, and each fault that an author can make is found by its check."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from broker_site.roof.conformance.splitters import CHECKS, check_splitter
from workqueues.splitters.by_events import by_events
from workqueues.splitters.by_files import by_files
from workqueues.splitters.choice import OURS, SPLITTERS, SplitterDeclaration
from workqueues.splitters.protocol import Files, JobPlan, Split


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", sorted(OURS))
def test_our_splitters_conform(name: str, check: str) -> None:
    CHECKS[check](SPLITTERS[name], 300)


def test_the_whole_suite_by_name() -> None:
    check_splitter("by_files", 20)


def changed(change: Callable[[Split, Files], Split | None], cut: Any = by_files) -> Any:
    """A splitter that does to each split what an author may have done wrong."""

    def planted(files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Any:
        return change(cut(files, rules, limits, most, secondaries), files)

    return planted


def first(split: Split, **more: Any) -> Split:
    """With another first job."""
    return replace(split, jobs=(split.jobs[0]._replace(**more), *split.jobs[1:])) if split.jobs else split


def reads_the_clock(files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Split:
    return by_files(files, rules, limits, most if time.time() else 0, secondaries)


def opens_a_file(files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Split:
    Path(__file__).read_bytes()
    return by_files(files, rules, limits, most, secondaries)


def forgets_limits(files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Split:
    return by_files(files, rules, replace(limits, budgets=()), most, secondaries)


def ignores_most(files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Split:
    return by_files(files, rules, limits, None, secondaries)


def cuts_the_window_evenly(files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Split:
    return by_files(files, replace(rules, files_per_job=max(len(files) // 2, 1)), limits, most, secondaries)


def sorts_in_place(files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Split:
    files.sizes.sort()
    return by_files(files, rules, limits, most, secondaries)


def counts_calls(calls: Any) -> Any:
    def planted(files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Split:
        return by_files(files, replace(rules, files_per_job=1 + next(calls) % 3), limits, most, secondaries)

    return planted


@pytest.mark.parametrize(
    ("check", "cut", "says"),
    [
        ("loses_nothing", changed(lambda s, f: replace(s, jobs=s.jobs[1:])), "begins at piece|what is left begins"),
        ("loses_nothing", changed(lambda s, f: replace(s, jobs=s.jobs[:1] * 2 + s.jobs[1:])), "what came before ends at"),
        ("loses_nothing", changed(lambda s, f: replace(s, jobs=s.jobs[::-1])), "not in the order of their pieces"),
        ("loses_nothing", changed(lambda s, f: replace(s, left=0)), "what is left begins at"),
        ("loses_nothing", changed(lambda s, f: replace(s, reason="")), "without a reason"),
        ("loses_nothing", changed(lambda s, f: first(s, n_events=999)), "says it has .* events"),
        ("loses_nothing", changed(lambda s, f: first(s, size=1_000_000)), "says it has 1000000 bytes"),
        ("loses_nothing", changed(lambda s, f: first(s, others=())), "does not deal out"),
        ("loses_nothing", changed(lambda s, f: first(s, upto=1)), "cuts events of files that are used as a whole"),
        ("loses_nothing", changed(lambda s, f: replace(s, secondaries=())), "does not deal out"),
        ("loses_nothing", changed(lambda s, f: first(s, stop=1.0)), "not a JobPlan of whole numbers"),
        ("loses_nothing", changed(lambda s, f: None), "gives NoneType, not a Split"),
        ("loses_nothing", changed(lambda s, f: replace(s, left=s.left // 0)), "raises ZeroDivisionError"),
        ("loses_nothing", forgets_limits, "takes more size than there is"),
        ("loses_nothing", ignores_most, "jobs where 1 were asked for"),
        ("touches_nothing", reads_the_clock, "uses time"),
        ("touches_nothing", opens_a_file, "uses pathlib.Path"),
        ("splits_the_same", counts_calls(count()), "splits otherwise"),
        ("splits_the_same", sorts_in_place, "changes what it is given"),
        ("goes_on", cuts_the_window_evenly, "cuts other jobs when"),
    ],
)  # fmt: skip
def test_each_fault_is_found_with_the_question_that_shows_it(check: str, cut: Any, says: str) -> None:
    with pytest.raises(AssertionError, match=says) as found:
        CHECKS[check](SplitterDeclaration("odd", cut, ("files",), "With a fault."), 300)
    assert "question" in str(found.value) or "uses" in says


def test_events_that_are_no_neighbours_are_found() -> None:
    def joins(split: Split, files: Files) -> Split:
        whole = JobPlan(0, len(files), sum(files.n_events), sum(files.sizes))
        return Split((whole,), secondaries=split.secondaries) if len(files) and not split.secondaries else split

    with pytest.raises(AssertionError, match="events that are not neighbours"):
        CHECKS["loses_nothing"](SplitterDeclaration("odd", changed(joins, by_events), ("events",), "With a fault."), 300)


def test_one_without_a_sentence_or_kinds_is_told() -> None:
    with pytest.raises(AssertionError, match="no docstring"):
        CHECKS["declared"](SplitterDeclaration("odd", by_files, ("files",), " "), 1)
    with pytest.raises(AssertionError, match="cuts nothing"):
        CHECKS["declared"](SplitterDeclaration("odd", by_files, (), "Odd."), 1)


def test_one_that_opens_a_file_in_another_way_is_found() -> None:
    class Reading:
        """A splitter of which the code cannot be looked through."""

        def __call__(self, files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Split:
            Path(__file__).read_bytes()
            return by_files(files, rules, limits, most, secondaries)

    with pytest.raises(AssertionError, match="reaches out of the process: open"):
        CHECKS["touches_nothing"](SplitterDeclaration("odd", Reading(), ("files",), "Odd."), 3)


def test_one_that_draws_is_found() -> None:
    def draws(files: Any, rules: Any, limits: Any, most: Any = None, secondaries: Any = ()) -> Split:
        return by_files(files, rules, limits, random.choice((most, most)), secondaries)

    with pytest.raises(AssertionError, match="uses random"):
        CHECKS["touches_nothing"](SplitterDeclaration("odd", draws, ("files",), "Odd."), 1)
