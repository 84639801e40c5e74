"""Which dispatch policy hands out the jobs of a VO at a queue, by the configuration."""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig.values import pick
from brokerage.rules.dispatch.dispatch_policy import DispatchPolicy, dispatch_policy_of


def policy_of(queue: str, vo: str) -> DispatchPolicy | None:
    """The dispatch policy for jobs of a VO at a queue; None where the one that is named is not there."""
    config = gdpconfig.component("dispatch", vo=vo)
    return dispatch_policy_of(pick(config, "DISPATCH_POLICY_<queue>", queue=queue), config["DISPATCH_POLICY"])
