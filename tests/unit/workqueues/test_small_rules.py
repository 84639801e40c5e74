"""Tries, seeds, numbered records, feeding, pending and resource classes."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_site.foundation.gdpconfig import keys
from workqueues import config_keys  # noqa: F401 - declares the keys
from workqueues.rules.jobs.event_ranges import FileState, after_try
from workqueues.rules.jobs.feeding import LoadedInputs, NewFile, after_feeding, used_part
from workqueues.rules.jobs.pseudo_files import choose_seeds, number_of, pseudo_files, seed_value
from workqueues.rules.jobs.resource_type import ram_per_core, resource_type
from workqueues.rules.jobs.split_rule import SplitRules, parse, written
from workqueues.rules.task.pending import times_out, wait_s


@pytest.mark.parametrize(
    ("tries", "outcome", "after"),
    [
        ((0, 3, 0, None), "finished", (1, 0, "finished")),
        ((0, 3, 0, None), "failed", (1, 1, "ready")),
        ((2, 3, 0, None), "failed", (3, 1, "failed")),
        ((2, 3, 0, None), "closed", (3, 0, "failed")),
        ((0, 3, 0, None), "cancelled", (1, 0, "ready")),
        ((0, 9, 0, 1), "failed", (1, 1, "failed")),
        ((0, 9, 0, 1), "returned", (1, 0, "ready")),
        ((5, None, 5, None), "failed", (6, 6, "ready")),
        ((2, 3, 2, 3), "finished", (3, 2, "finished")),
        ((2, 3, 0, None), "untried", (2, 0, "ready")),
    ],
)
def test_a_try(tries: tuple[int, int | None, int, int | None], outcome: Any, after: tuple[int, int, Any]) -> None:
    assert after_try(*tries, outcome) == FileState(*after)


@given(st.lists(st.sampled_from(["failed", "closed", "cancelled", "returned"]), min_size=3, max_size=3))
def test_three_tries_use_a_file_up_whatever_they_were(outcomes: list[Any]) -> None:
    attempt, failed, status = 0, 0, "ready"
    for outcome in outcomes:
        assert status == "ready"
        attempt, failed, status = after_try(attempt, 3, failed, None, outcome)
    assert status == "failed"


def test_a_failed_jobs_seed_goes_to_the_next_job_and_only_more_jobs_get_new_ones() -> None:
    assert choose_seeds([], 0, 2) == ([], [1, 2])
    assert choose_seeds([1], 2, 2) == ([1], [3])  # the job with seed 1 was cut in two
    assert choose_seeds([9, 4], 12, 1) == ([4], [])
    assert choose_seeds([4], 12, 0) == ([], [])
    assert seed_value(3, 7000) == 7003


def test_records_of_a_task_without_input() -> None:
    assert list(pseudo_files(3, offset=10, n_events=600, events_per_file=250)) == [
        NewFile("pseudo_000011", n_events=250, first_event=1),
        NewFile("pseudo_000012", n_events=250, first_event=251),
        NewFile("pseudo_000013", n_events=100, first_event=501),
    ]
    assert list(pseudo_files(1)) == [NewFile("pseudo_000001")]
    far = islice(pseudo_files(2_000_000, offset=999_998), 5)
    assert [number_of(f.lfn) for f in far] == [999_999, 1_000_000, 1_000_001, 1_000_002, 1_000_003]
    with pytest.raises(ValueError, match="pseudo"):
        number_of("hits.000001.root")


@pytest.mark.parametrize(
    ("events", "n_files", "n_events", "used"),
    [
        ([None] * 5, None, None, 5),
        ([None] * 5, 3, None, 3),
        ([100] * 5, None, 250, 3),
        ([100] * 5, None, 300, 3),
        ([100] * 5, 2, 300, 2),
        ([100] * 5, None, 10_000, 5),
        ([100, None], None, 100, 1),
        ([100, None], None, 101, None),
        ([], None, 5, 0),
    ],
)
def test_the_part_of_an_input_that_is_used(
    events: list[int | None], n_files: int | None, n_events: int | None, used: int | None
) -> None:
    assert used_part(events, n_files, n_events) == used


@pytest.mark.parametrize(
    ("usable", "empty", "rules", "still_open", "after"),
    [
        (1, (), {}, False, ("go", "")),
        (0, (), {}, False, ("break", "the input has no files")),
        (0, (), {"allow_empty_input": True}, False, ("finish", "the input has no files")),
        (0, (), {"wait_input": True}, True, ("wait", "the input has no files yet")),
        (0, (), {"allow_empty_input": True, "wait_input": True}, False, ("finish", "the input has no files")),
        (9, ("in.low", "in.high"), {}, False, ("break", "the secondary dataset in.low has no files")),
        (
            0,
            (),
            {"skip_short_input": True, "events_per_job": 50},
            True,
            ("break", "the input has no files of 50 events or more, and skipShortInput leaves the others out"),
        ),
    ],
)
def test_where_feeding_leads(
    usable: int, empty: tuple[str, ...], rules: dict[str, Any], still_open: bool, after: tuple[str, str]
) -> None:
    assert after_feeding(LoadedInputs(usable, empty), SplitRules(**rules), still_open=still_open) == after


def test_an_input_whose_files_have_no_events_is_told_from_one_without_files() -> None:
    assert after_feeding(LoadedInputs(0, (), 2), SplitRules()) == ("break", "the 2 files of the input have no events")
    allowed = SplitRules(allow_empty_input=True)
    assert after_feeding(LoadedInputs(0, (), 1), allowed) == ("finish", "the only file of the input has no events")


@pytest.mark.parametrize(
    ("priority", "activity", "minutes"),
    [(500, "production", 60), (900, "production", 30), (950, "production", 10), (1000, "analysis", 20), (1000, "generic", 60)],
)
def test_how_long_a_pending_task_rests(priority: int, activity: str, minutes: int) -> None:
    config = {key.name: key.default for key in keys.KEYS if key.component == "watchdog"}
    assert wait_s(priority, activity, config) == minutes * 60


def test_a_task_pending_for_too_long_is_exhausted_unless_its_parent_runs() -> None:
    assert not times_out(None, 100, parent_runs=False)
    assert not times_out(100, 100, parent_runs=False)
    assert times_out(101, 100, parent_runs=False)
    assert not times_out(101, 100, parent_runs=True)


@pytest.mark.parametrize(
    ("cores", "ram", "unit", "base", "ram_core", "name"),
    [
        (1, 2000, "MBPerCore", None, 1800, "SCORE"),
        (1, 3000, "MBPerCore", None, 2700, "SCORE_HIMEM"),
        (8, 1900, "MBPerCore", 1000, 1822, "MCORE"),
        (8, 16_000, "MB", 0, 1800, "MCORE"),
        (2, 8000, "MB", 2000, 4500, "MCORE_HIMEM"),
        (None, None, "MB", None, 0, "SCORE"),
        (0, 2000, "MBPerCoreFixed", 0, 1800, "MCORE"),
    ],
)
def test_resource_classes(cores: int | None, ram: float | None, unit: str, base: float | None, ram_core: int, name: str) -> None:
    assert ram_per_core(cores, ram, unit, base, 0.9) == ram_core
    assert resource_type(cores, ram, unit, base) == name


def test_a_need_that_no_class_takes() -> None:
    assert resource_type(1, 1, types=()) == "Undefined"


def test_split_rules_are_written_and_read() -> None:
    text = written({"NF": 2, "MF": 10, "RS": 7000, "AE": 1, "US": 1})
    assert text == "NF=2,MF=10,RS=7000,AE=1,US=1"
    assert parse(text) == SplitRules(files_per_job=2, max_files_per_job=10, random_seed=7000, allow_empty_input=True)
    assert parse("") == SplitRules()
    assert parse("LI=0,DR=0,TW=-1,DE=x") == SplitRules(t1_weight=-1)
