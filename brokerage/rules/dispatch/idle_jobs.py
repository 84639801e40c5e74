"""Jobs of users that wait at a queue for too long while nothing of their task moves there: they are brokered anew. Pure.

Source: seed 001, input data transfer (ANALY_TIMEOUT); facts on timeouts 4.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation.gdpconfig.values import pick

OUT_OF_SERVICE = frozenset({"offline", "test"})
"""At a queue of this status nothing is waited for."""


def timeout_s(group: str, config: Mapping[str, Any]) -> float:
    """How long jobs of a user may wait, or of a working group. `config`: component rebroker."""
    own = pick(config, "ANALY_TIMEOUT_<group>", group=group) if group else None
    return float(own or config["ANALY_TIMEOUT"])


def why_anew(waits_s: float, moved: bool, queue: str, status: str, group: str, config: Mapping[str, Any]) -> str:
    """Why the jobs of a task that wait at a queue go elsewhere; empty where they stay.

    `waits_s`: since when the first of them could have begun; `moved`: whether other jobs of the task got on there lately.
    """
    if waits_s <= config["ANALY_QUIET"]:
        return ""
    if status in OUT_OF_SERVICE:
        return f"{queue} is {status}"
    if moved or waits_s <= timeout_s(group, config):
        return ""
    return f"they waited at {queue} for {waits_s / 3600:.1f} h, and no job of the task got on there"
