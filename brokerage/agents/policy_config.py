"""The configuration that a policy reads, as it holds now: what is decided with is what is stored."""

from __future__ import annotations

from functools import partial
from typing import Any

from broker_site.foundation import gdpconfig
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.policy_config import gathered
from brokerage.rules.decision.record import config_of


def policy_config(policy: Policy, vo: str) -> dict[str, Any]:
    """Every key of the policy, for a VO."""
    return config_of(policy, gathered(policy, partial(gdpconfig.component, vo=vo)))
