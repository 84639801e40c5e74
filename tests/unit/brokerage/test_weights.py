"""Every weight where what it divides by is 0: the document's own form where it has one, else a skip that says what is 0."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from broker_site.foundation.kernel.verdict import Skip
from brokerage.policies.generic import Generic
from brokerage.rules.decision.declare import POLICIES, WEIGHTS, Factor, Policy, Weight
from brokerage.rules.decision.pipeline import PolicyDecision, decide, skips
from brokerage.rules.facts.columns import Columns
from brokerage.rules.facts.snapshot import Nuclei, Queues
from tests.unit.brokerage.grids import CONFIG, ask, piloted, queues

OURS = ("production", "analysis", "generic", "nucleus")
IDLE = dict.fromkeys(("running", "activated", "assigned", "starting", "defined"), 0)


def weighed(name: str, table: Columns, config: dict[str, Any] | None = None, **asked: Any) -> float:
    """The factor of the only candidate."""
    with np.errstate(divide="raise", invalid="raise"):
        factor = WEIGHTS[name](ask(**asked), table, CONFIG | (config or {}))
    return float(np.broadcast_to(factor, (1,))[0])


def nucleus(**columns: Any) -> Nuclei:
    return Nuclei.from_rows([{"name": "N", **columns}])


def running_over_queued_of_an_empty_queue() -> None:
    """+ 10, and manyAssigned without an activated job is (assigned + 1) / (activated + 1)."""
    assert weighed("running_over_queued", queues(**IDLE, missing_files=1), gb=1.0) == pytest.approx(1 / 10)
    assert weighed("running_over_queued", queues(**IDLE | {"assigned": 1}, missing_files=1), gb=1.0) == pytest.approx(1 / 11 / 2)
    assert weighed("running_over_queued", queues(**IDLE | {"assigned": 9}, missing_files=0)) == pytest.approx(1 / 10)


def running_over_all_queued_of_an_empty_queue() -> None:
    """+ 1."""
    assert weighed("running_over_all_queued", queues(**IDLE)) == 1.0


def running_over_waiting_of_an_empty_queue() -> None:
    """+ 1, twice."""
    assert weighed("running_over_waiting", queues(**IDLE)) == 1.0


def data_availability_without_input() -> None:
    """A total of 0: the term is dropped."""
    assert weighed("data_availability", queues(available_gb=5.0, missing_files=3), gb=0.0) == 1.0
    assert weighed("data_availability", queues(available_gb=1e-9, missing_files=0), gb=1e-9) == pytest.approx(2.0)


def t1_with_nothing_given() -> None:
    """No division."""
    assert weighed("t1", queues(at_nucleus=True), t1_weight=0.0) == 1.0
    assert weighed("t1", queues(at_nucleus=True), {"T1_CLOUD_WEIGHT": 0.0}, t1_weight=0.0, io_intensity=500.0) == 0.0


def network_at_the_smallest_cap() -> None:
    """The cap cannot be configured below 1; full is full."""
    lowest = {"NQUEUED_SAT_CAP": 1}
    assert weighed("network", queues(link_files=0, mbps=0.0), lowest, nucleus="N") == pytest.approx(0.5 * (2 + 1))
    assert weighed("network", queues(link_files=9, mbps=0.0), lowest, nucleus="N") == pytest.approx(0.5 * (1 + 1))


def remaining_work_of_an_idle_nucleus() -> None:
    """Below 50 counts as 1."""
    assert weighed("remaining_work", nucleus(total_rw=0.0)) == 1.0
    assert weighed("remaining_work", nucleus(total_rw=49.9)) == 1.0
    assert weighed("remaining_work", nucleus(total_rw=50.0)) == pytest.approx(0.02)


def input_there_without_input() -> None:
    """A total of 0: the term is dropped."""
    assert weighed("input_there", nucleus(available_gb=7.0), gb=0.0) == 1.0
    assert weighed("input_there", nucleus(available_gb=0.0), gb=7.0) == 0.0


def tape_without_input() -> None:
    """No division; nothing is on tape where there is no input."""
    assert weighed("tape", nucleus(tape_only=True), gb=0.0) == 1.0
    assert weighed("tape", nucleus(tape_only=True), gb=1.0) == 0.001


AT_ZERO = {
    "running_over_queued": running_over_queued_of_an_empty_queue,
    "running_over_all_queued": running_over_all_queued_of_an_empty_queue,
    "running_over_waiting": running_over_waiting_of_an_empty_queue,
    "data_availability": data_availability_without_input,
    "t1": t1_with_nothing_given,
    "network": network_at_the_smallest_cap,
    "remaining_work": remaining_work_of_an_idle_nucleus,
    "input_there": input_there_without_input,
    "tape": tape_without_input,
}


@pytest.mark.parametrize("name", AT_ZERO)
def test_the_weight_where_its_divisor_is_0(name: str) -> None:
    AT_ZERO[name]()


def test_every_weight_of_our_policies_is_in_the_table() -> None:
    assert {factor.name for policy in OURS for factor in POLICIES[policy].weights} == AT_ZERO.keys()


TABLE = piloted([{"name": "NONE", "corecount": 0}, {"name": "SOME", "corecount": 2, "running": 4}])


def _decided(divisor: str, factor: Factor) -> tuple[PolicyDecision, dict[str, Skip]]:
    return _decided_by(Weight("per_core_test", (), "", factor, divisor))


def _decided_by(*weights: Weight, table: Queues = TABLE) -> tuple[PolicyDecision, dict[str, Skip]]:
    """The generic broker's decision with other weights."""
    odd: Policy = type("Odd", (Generic,), {"weights": weights})
    asked = replace(ask(), core_count=0)
    decision = decide(odd, asked, table, CONFIG, "1")
    return decision, skips(decision, odd, asked, table, CONFIG)


@pytest.mark.parametrize(
    ("divisor", "says"),
    [("corecount", "cannot be computed: corecount is 0"), ("", "cannot be computed: per_core_test is not a number")],
)
def test_a_weight_that_divides_by_0_skips_the_candidate_and_says_what_is_0(divisor: str, says: str) -> None:
    decision, told = _decided(divisor, lambda _ask, table, _config: table.running / table.corecount)
    assert [choice.name for choice in decision.chosen] == ["SOME"]
    assert (told["NONE"].criterion, told["NONE"].kind, told["NONE"].reason) == ("-no_weight", "temporary", says)


def test_an_infinite_weight_is_none_either() -> None:
    decision, told = _decided("corecount", lambda _ask, table, _config: (table.running + 1) / table.corecount)
    assert [choice.name for choice in decision.chosen] == ["SOME"]
    assert told["NONE"].reason == "cannot be computed: corecount is 0"


def test_factors_whose_product_is_too_large_are_told_so() -> None:
    huge = Weight("a_test", (), "", lambda *_: 1e200)
    decision, told = _decided_by(huge, Weight("b_test", (), "", lambda *_: np.array([1e200, 1.0])))
    assert [choice.name for choice in decision.chosen] == ["SOME"]
    assert told["NONE"].reason == "cannot be computed: the product of the factors is not a number"


def test_a_policy_without_weights_takes_the_first_by_name() -> None:
    decision, told = _decided_by(table=piloted([{"name": f"Q{i}"} for i in range(7)]))
    assert [choice.name for choice in decision.chosen] == ["Q0", "Q1", "Q2", "Q3", "Q4"]
    assert told["Q5"].reason == "its weight 1 is not among the best"
