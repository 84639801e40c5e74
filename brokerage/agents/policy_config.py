"""The configuration that a policy reads, as it holds now: what is decided with is what is stored."""

from __future__ import annotations

from functools import partial
from typing import Any

from broker_site import gdpconfig
from brokerage.rules.decision_record import config_of
from brokerage.rules.declare import Policy
from brokerage.rules.policy_config import gathered


def policy_config(policy: Policy, vo: str) -> dict[str, Any]:
    """Every key of the policy, for a VO."""
    return config_of(policy, gathered(policy, partial(gdpconfig.component, vo=vo)))
