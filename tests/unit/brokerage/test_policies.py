"""Which policy decides, and what the nucleus broker takes."""

from __future__ import annotations

import pytest

from broker_site.foundation.kernel.registry import UnknownName
from brokerage.policies.generic import Generic
from brokerage.rules.decision.declare import POLICIES, BrokeragePolicy, policy, policy_for
from tests.unit.brokerage.grids import CONFIG


def test_a_vo_gets_its_own_policy_else_the_one_for_all() -> None:
    @policy(vo="vo-with-own", activity="generic")
    class Own(BrokeragePolicy):
        candidates, select, otherwise = Generic.candidates, Generic.select, Generic.otherwise
        filters = Generic.filters[:2]

    assert policy_for("vo-with-own", "generic") is Own
    assert policy_for("other", "generic") is Generic
    assert Own.name == "vo-with-own-generic"
    assert Own.version != Generic.version


def test_an_activity_that_nobody_serves_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownName, match="generic"):
        policy_for("atlas", "gardening")


def test_every_policy_names_its_criteria_keys_and_version() -> None:
    for found in POLICIES.values():
        assert issubclass(found, BrokeragePolicy)
        assert found.criteria[-1].label == "low_weight"
        assert found.version
        assert set(found.keys) <= set(CONFIG)
