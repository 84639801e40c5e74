"""Stored decisions: small, read back whole, and the same when taken again."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from brokerage.policies.generic import Generic
from brokerage.policies.nucleus import Nucleus
from brokerage.rules.decision.pipeline import decide
from brokerage.rules.decision.record import BadRecord, config_of, decode, encode, replay, sameness
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.snapshot import Nuclei
from tests.unit.brokerage.grids import CONFIG, ask, asks, grids, piloted, random_case


@settings(max_examples=40)
@given(asks, grids)
def test_a_record_reads_back_and_replays_to_the_same_bytes(asked: Ask, rows: list[dict[str, Any]]) -> None:
    table = piloted(rows)
    decision = decide(Generic, asked, table, CONFIG, "7/1")
    packed = encode(decision, Generic)
    record = decode(packed)
    assert record.labels == tuple(criterion.label for criterion in Generic.criteria)
    assert record.decision.chosen == decision.chosen
    assert np.array_equal(record.decision.first, decision.first)
    assert sameness(record.decision) == sameness(decision)
    stored = Ask.from_document(asked.to_document())
    assert replay(record, Generic, stored, table, config_of(Generic, CONFIG)) == packed


def test_a_decision_over_a_thousand_queues_takes_less_than_eight_kilobytes() -> None:
    dice = Random(4)
    _, rows = random_case(dice, 1000)
    asked = ask(ram_count=1900, cpu_time=100, events=1000, processing_type="reco", core_count=0)
    decision = decide(Generic, asked, piloted(rows), {**CONFIG, "BEST_GENERIC": 10}, "7/1")
    assert decision.outcome == "assign"
    assert len(encode(decision, Generic)) <= 8 * 1024 - len(str(asked.to_document()))


def test_runs_are_the_same_while_first_criteria_and_outcome_are() -> None:
    rows: list[dict[str, Any]] = [{"name": "A", "running": 5}, {"name": "B", "status": "test"}]
    first = decide(Generic, ask(), piloted(rows), CONFIG, "7/1")
    busier = decide(Generic, ask(), piloted([{**rows[0], "running": 9}, rows[1]]), CONFIG, "7/2")
    assert busier.chosen != first.chosen
    assert sameness(first) == sameness(busier)
    opened = decide(Generic, ask(), piloted([rows[0], {**rows[1], "status": "online"}]), CONFIG, "7/2")
    assert sameness(first) != sameness(opened)
    renamed = decide(Generic, ask(), piloted([rows[0], {**rows[1], "name": "C"}]), CONFIG, "7/2")
    assert sameness(first) != sameness(renamed)
    assert sameness(first) != sameness(replace(first, version="older"))


def test_a_drawn_nucleus_replays_with_the_seed_of_its_record() -> None:
    sites = Nuclei.from_rows([{"name": name, "free_gb": 8000} for name in "ABCDEFGH"])
    packed = {encode(decide(Nucleus, ask(), sites, CONFIG, f"7/{n}"), Nucleus) for n in range(40)}
    assert len({decode(one).decision.chosen for one in packed}) > 1
    assert all(replay(decode(one), Nucleus, ask(), sites, CONFIG) == one for one in packed)


@pytest.mark.parametrize(
    "packed", [b"", b"\x07", b"\x01garbage", b"\x01" + encode(decide(Generic, ask(), piloted([]), CONFIG, ""), Generic)]
)
def test_other_bytes_are_refused(packed: bytes) -> None:
    with pytest.raises(BadRecord):
        decode(packed)
