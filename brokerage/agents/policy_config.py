"""The configuration that a policy reads, as it holds now: what is decided with is what is stored."""

from __future__ import annotations

from typing import Any

from broker_site import gdpconfig
from brokerage.rules.decision_record import config_of
from brokerage.rules.declare import Policy


def policy_config(policy: Policy, vo: str) -> dict[str, Any]:
    """Every key of the policy, for a VO."""
    merged: dict[str, Any] = {}
    for component in policy.components:
        merged |= gdpconfig.component(component, vo=vo)
    return config_of(policy, merged)
