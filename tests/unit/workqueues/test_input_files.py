"""Which files each input dataset of a task gives, masters before their secondaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.builders import reading
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.rules.refine import DatasetFacts, DatasetPlan, read_task
from workqueues.rules.refine.chosen_files import absent_files, chosen_files
from workqueues.rules.refine.deleted_inputs import deleted_inputs
from workqueues.rules.refine.input_files import CannotFeed, InputFiles, usable_files

MASTER = DatasetPlan("in.data", "input")


def files(*events: int | None) -> list[NewFile]:
    return [NewFile(f"data._{i:02}.root", n_events=n) for i, n in enumerate(events, start=1)]


def fed(plan: DatasetPlan, given: list[NewFile], rules: SplitRules | None = None, **more: Any) -> list[NewFile]:
    return list(InputFiles(5, rules or SplitRules(), {plan.name: given}, **more).of(plan))


def test_events_are_numbered_over_all_masters_and_records_are_as_many_as_jobs_can_be() -> None:
    second = DatasetPlan("in.more", "input")
    numbers = DatasetPlan("seq", "pseudo_input", master_index=0)
    inputs = InputFiles(5, SplitRules(), {"in.data": files(10, 20), "in.more": files(5)})
    assert [f.first_event for f in inputs.of(MASTER)] == [1, 11]
    assert [f.first_event for f in inputs.of(second)] == [31]
    assert [f.lfn for f in inputs.of(numbers)] == ["pseudo_000001", "pseudo_000002", "pseudo_000003"]
    assert list(inputs.of(DatasetPlan("seeds", "random_seed"))) == []
    assert (inputs.events, inputs.jobs, inputs.catalogued) == (35, 3, {})


@pytest.mark.parametrize(
    ("wanted", "rules", "events"),
    [
        ({}, {}, [10, 0, 7]),
        ({"n_files": 2}, {}, [10, 0]),
        ({"n_events": 12}, {"events_per_job": 4}, [10, 2]),
        ({}, {"events_per_job": 4, "skip_short_input": True}, [8, 4]),
        ({"events_per_file": 3}, {}, [3, 3, 3]),
    ],
)
def test_a_master_gives_the_part_that_the_task_asked_for(
    wanted: dict[str, int], rules: dict[str, Any], events: list[int]
) -> None:
    made = fed(DatasetPlan("in.data", "input", **wanted), files(10, 0, 7), SplitRules(**rules))  # type: ignore[arg-type]
    assert [f.n_events for f in made] == events


@pytest.mark.parametrize(
    ("plan", "rules", "patterns", "said"),
    [
        ({"n_events": 50}, {}, (), "the events of some files of in.data are not known"),
        ({"needs_events": "nEventsPerJob"}, {}, (), "(data._02.root); give nEventsPerInputFile"),
        ({}, {"fields_of_file": True, "name_fields": (4,)}, ("${MIDDLENAME}.${SN}",), "field 4 is asked for"),
    ],
)
def test_a_task_whose_files_are_not_as_it_needs_them_can_never_run(
    plan: dict[str, Any], rules: dict[str, Any], patterns: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CannotFeed) as refused:
        fed(DatasetPlan("in.data", "input", **plan), files(10, None), SplitRules(**rules), patterns=patterns)
    assert said in str(refused.value)


def test_partners_keep_only_the_numbers_that_all_of_them_have() -> None:
    low = DatasetPlan("low", "input", master_index=0, attributes="ic")
    high = DatasetPlan("high", "input", master_index=0, attributes="ic")
    catalogued: dict[str, Sequence[NewFile]] = {"in.data": files(1, 1), "low": files(1, 1, 1), "high": files(1)}
    usable = usable_files(catalogued, [MASTER, low, high])
    assert {name: len(of) for name, of in usable.items()} == {"in.data": 2, "low": 1, "high": 1}


def test_a_shuffled_dataset_comes_in_the_same_order_when_it_is_fed_again() -> None:
    shuffled = DatasetPlan("in.data", "input", attributes="rd")
    once, again = fed(shuffled, files(*range(1, 30))), fed(shuffled, files(*range(1, 30)))
    assert once == again
    assert [f.lfn for f in once] != sorted(f.lfn for f in once)


def test_a_task_uses_the_files_that_it_names_and_none_that_others_have_used() -> None:
    named = DatasetPlan("in.data", "input", stream_name="IN", files=("data._01.root", "data._03.root", "other.root"))
    second = DatasetPlan("in.more", "input", stream_name="IN", files=named.files)
    catalogued = {"in.data": files(1, 1, 1), "in.more": [NewFile("other.root"), NewFile("last.root")]}
    chosen = chosen_files(catalogued, [named, second], {"in.data": {"data._03.root"}})
    assert {name: [f.lfn for f in of] for name, of in chosen.items()} == {"in.data": ["data._01.root"], "in.more": ["other.root"]}
    assert absent_files(catalogued, [named, second], ()) == {}
    assert absent_files({**catalogued, "in.more": []}, [named, second], ()) == {"other.root": "in.data"}
    assert absent_files({**catalogued, "in.more": []}, [named, second], {"in.more"}) == {}, "it may come yet"


def test_newer_attempts_stand_for_the_files_that_are_named() -> None:
    names = ("a.root.1", "b.root.2", "c.root", "in.000001")
    plans = [DatasetPlan(name, "input", stream_name="IN", files=names) for name in ("in.data", "in.recov")]
    catalogued = {
        "in.data": [NewFile(lfn) for lfn in ("a.root.1", "b.root.1", "c.root", "in.000001", "in.000002")],
        "in.recov": [NewFile(lfn) for lfn in ("a.root.2", "a.root.3", "c.root.1")],
    }

    def chosen(taken: Sequence[str] | None) -> dict[str, list[str]]:
        return {name: [f.lfn for f in of] for name, of in chosen_files(catalogued, plans, {}, taken).items()}

    assert chosen(None) == {"in.data": ["a.root.1", "c.root", "in.000001"], "in.recov": []}
    assert chosen(()) == {"in.data": ["in.000001"], "in.recov": ["a.root.3", "c.root.1"]}
    assert chosen(["a.root.2", "c.root"]) == {"in.data": ["c.root", "in.000001"], "in.recov": ["a.root.2"]}
    assert chosen(["a.root.9"]) == {"in.data": ["in.000001"], "in.recov": ["c.root.1"]}, "it had that one"
    assert absent_files(catalogued, plans, (), newer=True) == {"b.root.2": "in.data"}, "an older one will not do"


def test_a_sequence_goes_on_behind_the_numbers_that_others_have_used() -> None:
    used = {"pseudo_dataset": {"pseudo_000001", "pseudo_000003"}}
    records = DatasetPlan("pseudo_dataset", "pseudo_input", n_files=3, n_events=25, events_per_file=10)
    made = list(InputFiles(5, SplitRules(), {}, used=used).of(records))
    assert [(f.lfn, f.n_events, f.first_event) for f in made] == [
        ("pseudo_000002", 10, 1), ("pseudo_000004", 10, 11), ("pseudo_000005", 5, 21),
    ]  # fmt: skip


def test_a_secondary_dataset_is_skipped_only_beside_others_of_its_item() -> None:
    document = read_task(
        reading("t", "in.one,in.two", ignoreMissingInDS=True)
        | {
            "jobParameters": [
                {"type": "template", "param_type": "input", "dataset": "in.one,in.two", "value": "--in ${IN/L}"},
                {"type": "template", "param_type": "input", "dataset": "low.one,low.two", "value": "--low ${LOW/L}"},
                {"type": "template", "param_type": "input", "dataset": "db", "value": "--db ${DB}"},
                {"type": "template", "param_type": "output", "dataset": "t.OUT", "value": "--out=t.OUT.${SN}.txt"},
            ]
        }
    )
    assert not document.problems
    known = {name: DatasetFacts(name) for name in ("in.two", "low.one")}
    assert set(deleted_inputs(document, known, document.input_names)) == {"in.one", "low.two"}
    assert set(deleted_inputs(document, known, ["low.two"])) == {"low.two"}
