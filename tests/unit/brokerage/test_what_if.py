"""What would be decided if something were different: edits are checked like what they stand for, and change just that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import brokerage.config_keys
import brokerage.policies  # noqa: F401 - declares ours
from broker_site.foundation.gdpconfig.values import from_document
from brokerage.rules.decision.assembly import DecisionRequest
from brokerage.rules.decision.declare import POLICIES
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.explain.edits import BadEdits, Edit, edited_ask, read_edits
from brokerage.rules.explain.what_if import WhatIf, what_if
from brokerage.rules.facts.ask import Ask
from brokerage.rules.grid.document import read_grid
from brokerage.rules.grid.measurements import read_facts
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import TaskFacts

DOCUMENTS = Path(__file__).parents[3] / "examples" / "decide"


def document(name: str) -> Any:
    return json.loads((DOCUMENTS / f"{name}.json").read_text())


def request(policy: str = "production") -> DecisionRequest:
    told = document("grid")
    grid = read_grid(told)
    facts = read_facts(told, grid)
    assert facts.now is not None
    config = BrokerConfig(from_document(document("config")).component)
    ask = Ask.from_document(document(policy))
    return DecisionRequest(GridSnapshot(grid, facts, facts.now), TaskFacts(), ask, POLICIES[policy], config, "0")


def asked(*edits: str, policy: str = "production") -> WhatIf:
    return what_if(request(policy), read_edits(edits))


def problems(*edits: str) -> list[tuple[str, str]]:
    with pytest.raises(BadEdits) as refused:
        asked(*edits)
    return [(p.field, p.rule) for p in refused.value.problems]


@pytest.mark.parametrize("policy", ["production", "analysis"])
def test_without_edits_it_is_what_the_brokerage_would_decide_now(policy: str) -> None:
    told = asked(policy=policy)
    expected = document(f"{policy}.expected")
    assert [(c.name, pytest.approx(c.weight)) for c in told.before.chosen] == [
        (c["queue"], c["weight"]) for c in expected["chosen"]
    ]
    assert {s.name: s.criterion for s in told.before.skipped} == {s["queue"]: s["criterion"] for s in expected["skipped"]}
    assert (told.after, told.edits, told.changed) == (None, (), ())


@pytest.mark.parametrize(("word", "value"), [("on", True), ("yes", True), ("off", False), ("0", False)])
def test_a_switch_is_said_in_the_same_words_for_a_task_and_for_the_grid(word: str, value: bool) -> None:
    told = asked(f"avoid_vp={word}", f"queue.*.direct_access_lan={word}")
    assert [edit.after for edit in told.edits] == [value, value]


def test_a_task_parameter_changes_the_funnel_and_says_which_queues_changed() -> None:
    told = asked("ramCount=8000")
    assert told.after is not None
    assert [(e.name, e.before, e.after) for e in told.edits] == [("ramCount", 1900, 8000)]
    assert {c.after for c in told.changed} == {"-lowmemory"}
    assert {c.name for c in told.changed if c.before == "chosen"} == {c.name for c in told.before.chosen}
    assert told.changed[0].why_after.startswith("a job needs ")
    assert told.after.outcome == "pending"
    json.dumps(told.to_document(), allow_nan=False)


@pytest.mark.parametrize(
    ("edit", "chosen"),
    [
        ("queue.SOUTH.status=offline", {"WEST/MCORE", "NORTH/MCORE"}),
        ("queue.*.status=offline", set()),
        ("site.SOUTH.state=DISABLED", {"WEST/MCORE", "NORTH/MCORE"}),
        ("config.MEMORY_COMPENSATION=0.5", None),
        ("config.BEST_PRODUCTION=1", {"SOUTH/MCORE"}),
        ("excludedSite=WEST,SOUTH", None),
    ],
)
def test_an_edit_reaches_what_it_names(edit: str, chosen: set[str] | None) -> None:
    told = asked(edit)
    assert told.after is not None
    if chosen is not None:
        assert {c.name for c in told.after.chosen} == chosen
    assert told.before == asked().before


def test_the_fields_of_an_ask_go_by_the_name_of_the_task_parameter_or_their_own() -> None:
    assert asked("ramCount=8000").after == asked("ram_count=8000").after
    assert asked("chunk.gb=1e6", "core_count=8").edits[0].after == 1e6


def test_the_switch_to_queues_of_the_nucleus_only_can_be_set() -> None:
    assert asked("t1_weight=-1").edits[0].after == -1


@pytest.mark.parametrize("name", ["ramCount", "chunk.gb", "priority", "t1_weight"])
def test_true_is_no_number(name: str) -> None:
    ask, _, problems = edited_ask(Ask(), [Edit(name, True)])
    assert [(p.field, p.rule) for p in problems] == [(name, "type")]
    assert ask == Ask()


@pytest.mark.parametrize("name", ["chunk.gb", "waits_s", "ioIntensity"])
def test_what_is_not_finite_is_no_number(name: str) -> None:
    _, _, problems = edited_ask(Ask(), [Edit(name, "nan"), Edit(name, float("inf"))])
    assert {(p.rule, p.message) for p in problems} == {("type", "expected a finite number")}


def test_a_text_that_is_taken_away_is_not_given() -> None:
    ask, _, problems = edited_ask(Ask(nucleus="ALPHA", ram_unit="MB"), [Edit("nucleus", None), Edit("ramUnit", None)])
    assert (problems, ask.nucleus, ask.ram_unit) == ([], None, None)


def test_a_number_that_is_taken_away_is_zero_where_a_task_has_it_so() -> None:
    assert edited_ask(Ask(ram_count=5), [Edit("ramCount", "")])[0].ram_count == 0


def test_an_empty_value_is_as_if_it_had_not_been_given() -> None:
    told = asked("ramCount=8000", "ramCount=")
    assert told.after is not None
    assert told.after.chosen
    assert asked("excludedSite=").edits[0].after in ((), None)


@pytest.mark.parametrize(
    ("edit", "field", "rule"),
    [
        ("ramCount", "ramCount", "form"),
        ("=5", "=5", "form"),
        ("ramcount=1", "ramcount", "unknown"),
        ("ramCount=many", "ramCount", "type"),
        ("ramCount=-1", "ramCount", "range"),
        ("ramCount=nan", "ramCount", "type"),
        ("ramUnit=furlong", "ramUnit", "format"),
        ("scout=perhaps", "scout", "type"),
        ("queue.NOWHERE.maxrss=1", "queue.NOWHERE.maxrss", "unknown"),
        ("queue.SOUTH.maxrs=1", "queue.SOUTH.maxrs", "unknown"),
        ("queue.SOUTH.maxrss=much", "queue.SOUTH.maxrss", "type"),
        ("queue.SOUTH.status=asleep", "queue.SOUTH.status", "choice"),
        ("storage.SOUTH_DISK.site=", "storage.SOUTH_DISK.site", "required"),
        ("storage.SOUTH_DISK.free_gb=-1", "storage.SOUTH_DISK.free_gb", "range"),
        ("config.NQUEUELIMITSITES=5", "config.NQUEUELIMITSITES", "unknown"),
        ("config.NQUEUELIMITSITE=few", "config.NQUEUELIMITSITE", "type"),
        ("config.MEMORY_COMPENSATION=-3", "config.MEMORY_COMPENSATION", "range"),
        ("config.PENDING_ANALYSIS=1h", "config.PENDING_ANALYSIS", "unknown"),
    ],
)
def test_a_bad_edit_is_refused_with_field_and_rule(edit: str, field: str, rule: str) -> None:
    assert problems(edit) == [(field, rule)]


def test_all_bad_edits_are_told_at_once_and_the_nearest_name_is_offered() -> None:
    assert len(problems("ramcount=1", "queue.SOUTH.status=asleep", "config.NOPE=1")) == 3
    with pytest.raises(BadEdits, match="ramCount"):
        asked("ramcount=1")
    with pytest.raises(BadEdits, match="the grid has no queue 'SOUT'; the nearest known one is"):
        asked("queue.SOUT.maxrss=1")
    with pytest.raises(BadEdits, match="at most 50"):
        asked(*["ramCount=1"] * 51)


def test_typed_values_do_as_well_as_texts() -> None:
    told = asked()
    assert what_if_of(Edit("ramCount", 8000)) == asked("ramCount=8000")
    assert told.before == what_if_of(Edit("ramCount", 1900)).before


def what_if_of(*edits: Edit) -> WhatIf:
    return what_if(request(), edits)


def test_the_choice_of_a_nucleus_hears_of_queues_too() -> None:
    told = asked("queue.*.status=offline", policy="nucleus")
    assert told.after is not None
    assert told.before.noun == "nucleus site"
    assert {s.criterion for s in told.after.skipped} >= {"-job"}
    assert told.jobs is not None
    assert told.jobs_after is not None
    assert (told.jobs.noun, told.jobs.outcome, told.jobs_after.outcome) == ("queue", "assign", "pending")
    assert {s.criterion for s in told.jobs_after.skipped} >= {"-status"}
    json.dumps(told.to_document(), allow_nan=False)
