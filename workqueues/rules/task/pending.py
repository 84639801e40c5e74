"""How long a pending task rests before it is tried again, and when it has been pending for too long.

Source: facts on timeouts 4.4: 60 minutes (document: analysis 20), production from priority 900 on 30, from 950 on 10; the
time-out ends in exhausted and does not run while the parent does.
"""

from __future__ import annotations

from collections.abc import Mapping


def wait_s(priority: int, activity: str, config: Mapping[str, float]) -> float:
    """Seconds until a pending task is tried again. `config`: the keys PENDING_WAIT... of the component watchdog, seconds."""
    if activity == "analysis":
        return config["PENDING_WAIT_ANALYSIS"]
    if activity == "production" and priority >= 950:
        return config["PENDING_WAIT_PRIO_950"]
    if activity == "production" and priority >= 900:
        return config["PENDING_WAIT_PRIO_900"]
    return config["PENDING_WAIT"]


def times_out(frozen_s: float | None, timeout_s: float, parent_runs: bool) -> bool:
    """Whether a pending task is given up. `frozen_s`: seconds since its spell without success began, None without one."""
    return frozen_s is not None and frozen_s > timeout_s and not parent_runs
