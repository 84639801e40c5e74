"""A decision of the generic broker: right queue by queue, whatever the grid, and always with a reason."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerage.policies.generic import Generic
from brokerage.rules.decision.declare import weight
from brokerage.rules.decision.pipeline import decide, skips
from brokerage.rules.facts.ask import Ask
from tests.unit.brokerage.grids import CONFIG, ask, asks, grids, piloted

GRID = [
    {"name": "EMPTY", "running": 9},
    {"name": "BUSY", "running": 10, "activated": 9},
    {"name": "SMALL", "maxrss": 1000, "running": 50},
    {"name": "CLOSED", "status": "offline", "running": 50},
]


@settings(max_examples=40)
@given(asks, grids)
def test_every_queue_is_chosen_or_has_a_reason_and_never_both(asked: Ask, rows: list[dict[str, Any]]) -> None:
    table = piloted(rows)
    decision = decide(Generic, asked, table, CONFIG, "1")
    reasons = skips(decision, Generic, asked, table, CONFIG)
    chosen = {choice.name for choice in decision.chosen}
    assert chosen | reasons.keys() == set(table.index)
    assert not chosen & reasons.keys()
    assert all(skip.reason and skip.criterion.startswith("-") for skip in reasons.values())
    assert bool(decision.closest) == (decision.outcome == "pending" and bool(rows))


@settings(max_examples=40)
@given(asks, grids, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(asked: Ask, rows: list[dict[str, Any]], shuffler: Random) -> None:
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    one = decide(Generic, asked, piloted(rows), CONFIG, "1")
    other = decide(Generic, asked, piloted(shuffled), CONFIG, "1")
    assert one.chosen == other.chosen
    assert one.closest == other.closest
    assert np.array_equal(one.bits, other.bits)
    assert np.array_equal(one.first, other.first)


def test_the_emptiest_queues_come_first_and_the_others_say_why_not() -> None:
    table = piloted(GRID)
    asked = ask(ram_count=2000, ram_unit="MB")
    decision = decide(Generic, asked, table, CONFIG, "1")
    assert [choice.name for choice in decision.chosen] == ["EMPTY", "BUSY"]
    reasons = skips(decision, Generic, asked, table, CONFIG)
    assert reasons["SMALL"].criterion == "-lowmemory"
    assert reasons["SMALL"].reason == "a job needs 2000 MB, a slot gives 1000 MB"
    assert reasons["SMALL"].numbers["need_mb"] == 2000
    assert reasons["CLOSED"].reason == "its status is offline, not online"


def test_equal_weights_are_settled_by_name() -> None:
    table = piloted([{"name": name, "running": 3} for name in "DBAC"])
    decision = decide(Generic, ask(), table, {**CONFIG, "BEST_GENERIC": 2}, "1")
    assert [choice.name for choice in decision.chosen] == ["A", "B"]


def test_without_any_queue_the_task_waits() -> None:
    decision = decide(Generic, ask(), piloted([]), CONFIG, "1")
    assert (decision.outcome, decision.closest, decision.wait_s) == ("pending", "", CONFIG["PENDING_GENERIC"])


def test_a_task_that_names_its_queue_gets_it_also_when_that_is_not_online() -> None:
    decision = decide(Generic, ask(site="CLOSED"), piloted(GRID), CONFIG, "1")
    assert [choice.name for choice in decision.chosen] == ["CLOSED"]


def test_a_rule_is_declared_once() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        weight("running_over_waiting")(lambda _ask, queues, _config: queues.corepower)


def test_a_policy_reads_only_the_keys_that_it_declares() -> None:
    table = piloted(GRID)
    narrow = {key: CONFIG[key] for key in Generic.keys}
    assert decide(Generic, ask(), table, narrow, "1").chosen == decide(Generic, ask(), table, CONFIG, "1").chosen
