"""How files become elements, and what the task of an element is told (rows W1, X5; decisions J2, J4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import parameters, reading
from workqueues.rules.elements.child_parameters import SEEDS_OF_CHILDREN, ElementFacts, child_parameters
from workqueues.rules.elements.cuts import cut_files, cut_records
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.jobs.pseudo_files import number_of
from workqueues.rules.refine.validate import read_task, validate

PLACES = st.frozensets(st.sampled_from(["A", "B", "C"]))


def element(**more: Any) -> ElementFacts:
    facts: dict[str, Any] = {
        "name": "t.e7.9", "priority": 700, "dataset": "in.data", "files": ["f1", "f2"], "n_events": 20, "first_event": 1,
        "is_records": False, "serial_first": 101, "tries": 2, "measured": {},
    }  # fmt: skip
    return ElementFacts(**{**facts, **more})


@given(st.lists(PLACES, max_size=60), st.integers(1, 7))
def test_every_file_is_in_one_element_of_files_at_the_same_places(places: list[frozenset[str]], most: int) -> None:
    files = [InputFile(i, 1, f"f{i}") for i in range(len(places))]
    cuts = list(cut_files(files, {f"f{i}": place for i, place in enumerate(places)}, most))
    assert sorted(file.id for cut in cuts for file in cut.files) == list(range(len(places)))
    assert all(
        len(cut.files) <= most and {frozenset(places[f.id]) for f in cut.files} == {frozenset(cut.storages)} for cut in cuts
    )
    small = [cut.storages for cut in cuts if len(cut.files) < most]
    assert len(small) == len(set(small)), "of each place one at most is small"


@given(st.sets(st.integers(1, 80)), st.integers(1, 9))
def test_records_of_an_element_follow_each_other(numbers: set[int], most: int) -> None:
    records = [InputFile(n, 1, f"pseudo_{n:06d}") for n in sorted(numbers)]
    cuts = list(cut_records(records, most))
    assert [file.id for cut in cuts for file in cut.files] == sorted(numbers)
    for cut in cuts:
        first = number_of(cut.files[0].lfn)
        assert len(cut.files) <= most
        assert [file.id for file in cut.files] == list(range(first, first + len(cut.files)))


def test_the_task_of_an_element_reads_its_files_and_writes_under_its_numbers() -> None:
    params = reading("t", "in.data", workTo="children", team="red", nFiles=50, includedSite=["SITE_A"], gshare="Prod")
    made = child_parameters(params, element())
    (item,) = (item for item in made["jobParameters"] if item["param_type"] == "input")
    assert (item["dataset"], item["files"]) == ("in.data", ["f1", "f2"])
    assert {i["offset"] for i in [*made["jobParameters"], made["log"]] if i["param_type"] in ("output", "log")} == {100}
    assert (made["taskName"], made["taskPriority"], made["maxAttempt"], made["skipScout"]) == ("t.e7.9", 700, 2, True)
    assert not {"workTo", "team", "nFiles", "includedSite", "gshare"} & made.keys()
    assert validate(made) == []
    assert "offset" not in params["log"], "the parameters of the parent stay as they are"


def test_records_keep_their_numbers_and_seeds_are_of_children_alone() -> None:
    facts = element(is_records=True, files=["pseudo_000011", "pseudo_000012"], n_events=20, first_event=101)
    items = [
        {"type": "template", "param_type": "number", "value": "--seed ${RNDMSEED}", "offset": 5},
        {"type": "template", "param_type": "number", "value": "--first ${FIRSTEVENT}"},
        {"type": "template", "param_type": "output", "dataset": "mc.EVT", "value": "--out=mc.EVT.${SN}.txt"},
    ]
    made = child_parameters(parameters("mc", jobParameters=items), facts)
    seed, first, _, sequence = made["jobParameters"]
    assert (seed["offset"], first["offset"]) == (5 + SEEDS_OF_CHILDREN + 100, 100)
    assert (sequence["param_type"], sequence["offset"], sequence["hidden"]) == ("pseudo_input", 10, True)
    assert (made["nEvents"], validate(made)) == (20, [])


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"site": "ALPHA"}, "site"),
        ({"nEventsPerJob": 5, "nFilesPerJob": None}, "nEventsPerJob"),
        ({"groupBoundaryID": 1}, "groupBoundaryID"),
        ({"inputPreStaging": True}, "inputPreStaging"),
    ],
)
def test_work_that_cannot_be_divided_is_refused_with_the_field(more: dict[str, Any], field: str) -> None:
    problems = read_task(reading("t", "in.data", workTo="children", **more)).problems
    assert field in {problem.field for problem in problems if problem.rule == "contradiction"}
    assert read_task(reading("t", "in.data", **more)).problems == ()
