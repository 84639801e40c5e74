"""In one word, how a child broker stands with its parent."""

from __future__ import annotations

from datetime import datetime

CHILD_STATES = ("pulls", "new", "quiet", "draining", "drained", "revoked")


def child_state(
    now: datetime,
    quiet_s: float,
    *,
    is_revoked: bool,
    last_contact: datetime | None,
    drain_since: datetime | None,
    drain_until: datetime | None,
    is_draining: bool,
) -> str:
    """One of CHILD_STATES, the first that holds from the last on. `quiet_s`: after so many seconds it counts as not heard of."""
    if is_revoked:
        return "revoked"
    if drain_since is not None and drain_until is not None and drain_until <= now:
        return "drained"
    if drain_since is not None or is_draining:
        return "draining"
    if last_contact is None:
        return "new"
    return "quiet" if (now - last_contact).total_seconds() > quiet_s else "pulls"
