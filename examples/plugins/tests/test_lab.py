"""The tests of the plugin: GridBroker's suite for policies, and what its own rules say at their limits."""

from __future__ import annotations

import pytest

from broker_site.conformance.policies import CHECKS
from broker_site.gdpconfig import Config
from brokerage.rules.ask import Ask
from brokerage.rules.pipeline import decide, skips
from brokerage.rules.policy_config import gathered
from brokerage.rules.snapshot import Queues
from gridbroker_lab.policy import LabProduction

CONFIG = gathered(LabProduction, Config().component)
QUEUES = Queues.from_rows(
    [
        {"name": "BUSY", "pledgedcpu": 100, "running_cores": 64},
        {"name": "QUIET", "pledgedcpu": 100, "running_cores": 63},
        {"name": "GUEST", "pledgedcpu": 0, "running_cores": 0},
    ]
)


@pytest.mark.parametrize("check", CHECKS)
def test_the_policy_conforms(check: str) -> None:
    CHECKS[check](LabProduction, 200)


def test_interactive_work_goes_where_few_cores_are_busy() -> None:
    ask = Ask(vo="lab", processing_type="interactive")
    decision = decide(LabProduction, ask, QUEUES, CONFIG, "1")
    told = skips(decision, LabProduction, ask, QUEUES, CONFIG)
    assert [choice.name for choice in decision.chosen] == ["QUIET"]
    assert told["BUSY"].reason == "64 of its cores are busy, fewer than 64 are wanted for interactive work"
    assert told["GUEST"].reason == "cannot be computed: pledgedcpu is 0"


def test_other_work_goes_where_most_power_is_idle() -> None:
    decision = decide(LabProduction, Ask(vo="lab"), QUEUES, CONFIG, "1")
    assert [(choice.name, round(choice.weight, 6)) for choice in decision.chosen] == [("QUIET", 3.7), ("BUSY", 3.6)]
