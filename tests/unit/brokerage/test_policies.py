"""Which policy decides, and what the nucleus broker takes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from broker_site.kernel.registry import UnknownName
from brokerage.policies.generic import Generic
from brokerage.policies.nucleus import Nucleus
from brokerage.rules.declare import POLICIES, BrokeragePolicy, policy, policy_for
from brokerage.rules.pipeline import decide, skips
from brokerage.rules.snapshot import Nuclei
from tests.unit.brokerage.grids import CONFIG, ask

IN = ""


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


@pytest.mark.parametrize(
    ("asked", "site", "skipped"),
    [
        ({}, {"free_gb": 5001}, IN),
        ({}, {"free_gb": 5000}, "-space"),
        ({}, {"free_gb": 5001, "total_rw": 10 * 86400 * 8}, "-space"),
        ({}, {"free_gb": 5001, "state": "DISABLED"}, "-status"),
        ({}, {"free_gb": 5001, "files_queued": 1999}, IN),
        ({}, {"free_gb": 5001, "files_queued": 2000}, "-transfer_backlog"),
        ({"t1_weight": -1}, {"free_gb": 5001, "files_queued": 2000}, IN),
        ({"nucleus": "N"}, {"free_gb": 5001}, IN),
        ({"nucleus": "M"}, {"free_gb": 9999}, "-nonpreassigned"),
    ],
)
def test_which_sites_can_be_the_nucleus(asked: dict[str, Any], site: dict[str, Any], skipped: str) -> None:
    sites = Nuclei.from_rows([{"name": "N", **site}])
    decision = decide(Nucleus, ask(**asked), sites, CONFIG, "1")
    found = skips(decision, Nucleus, ask(**asked), sites, CONFIG)
    assert (found["N"].criterion if found else IN) == skipped


def test_one_nucleus_is_drawn_in_proportion_to_its_space() -> None:
    sites = Nuclei.from_rows(
        [{"name": "BIG", "free_gb": 30_000}, {"name": "SMALL", "free_gb": 10_000}, {"name": "FULL", "free_gb": 1}]
    )
    drawn = Counter(decide(Nucleus, ask(), sites, CONFIG, str(seed)).chosen[0].name for seed in range(400))
    assert drawn["BIG"] == pytest.approx(300, abs=30)
    assert drawn.keys() == {"BIG", "SMALL"}
    decision = decide(Nucleus, ask(), sites, CONFIG, "1")
    assert set(skips(decision, Nucleus, ask(), sites, CONFIG)) == {"BIG", "SMALL", "FULL"} - {decision.chosen[0].name}
