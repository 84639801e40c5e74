"""What a task without queue is told: the queue that comes closest, and what it lacks (decision B3)."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage.policies.analysis import Analysis
from brokerage.policies.generic import Generic
from brokerage.policies.production import Production
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.pipeline import decide, skips
from tests.unit.brokerage.grids import CONFIG, ask, piloted

NEED = {"ram_count": 4000, "ram_unit": "MB"}


@pytest.mark.parametrize(
    ("rows", "closest"),
    [
        ([{"name": "A", "maxrss": 3000, "status": "offline"}, {"name": "B", "maxrss": 1000}], "B"),
        ([{"name": "A", "maxrss": 1000}, {"name": "B", "maxrss": 3900}], "B"),
        ([{"name": "A", "maxrss": 3900, "corecount": 8}, {"name": "B", "maxrss": 1000}], "B"),
        ([{"name": "B", "maxrss": 3900}, {"name": "A", "maxrss": 3900}], "A"),
        ([{"name": "A", "maxrss": 3999}, {"name": "B", "space_gb": 1}], "B"),
        ([{"name": "A", "space_gb": 100}, {"name": "B", "space_gb": 190}], "B"),
        ([{"name": "A", "space_gb": 0}, {"name": "B", "space_gb": 1}], "B"),
        ([{"name": "A", "status": "test"}, {"name": "B", "status": "offline"}], "A"),
        ([{"name": "A", "status": "test"}, {"name": "B", "maxrss": 1000}], "B"),
    ],
    ids=[
        "fewer persistent failures",
        "smaller gap",
        "fewer beats smaller gap",
        "same gap: by name",
        "only a temporary one",
        "smaller gap of a temporary one",
        "a gap from nothing is infinite",
        "no numbers: by name",
        "numbers beat none",
    ],
)
def test_the_closest_queue(rows: list[dict[str, Any]], closest: str) -> None:
    decision = decide(Generic, ask(**NEED), piloted(rows), CONFIG, "1")
    assert (decision.outcome, decision.closest) == ("pending", closest)


def test_of_a_task_that_names_a_queue_the_closest_is_that_one() -> None:
    """Others lack less, but could never take it."""
    rows: list[dict[str, Any]] = [{"name": "A"}, {"name": "B", "maxrss": 1000, "space_gb": 1, "allowed_processing": "reco"}]
    decision = decide(Generic, ask(**NEED, site="B", processing_type="simul"), piloted(rows), CONFIG, "1")
    assert (decision.outcome, decision.closest) == ("pending", "B")


@pytest.mark.parametrize("policy", [Generic, Production, Analysis])
def test_a_task_that_names_no_queue_of_the_grid_is_told_so(policy: Policy) -> None:
    queues = piloted([{"name": "A"}, {"name": "B"}])
    asked = ask(**NEED, site="GONE")
    told = skips(decide(policy, asked, queues, CONFIG, "1"), policy, asked, queues, CONFIG)["A"].reason
    assert told.endswith("only at GONE, and no queue here is called so")
