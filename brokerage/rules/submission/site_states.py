"""What state a site is in for submission: as somebody says it, or else by its computing queues (decision J8)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from workqueues.states import SITE_CLOSED, SITE_DRAINED, SITE_OPEN

BY_QUEUES: Final = "ACTIVE"
"""The attribute of a site that says nothing against it."""
NORMAL, DRAINING, DOWN, ABORTED = "Normal", "Draining", "Down", "Aborted"
SETTABLE = (BY_QUEUES, DRAINING, DOWN, ABORTED)
"""What an operator may set."""
SITE_LINE: Final = "site"
"""The kind of lines of change sets that do so."""
STOPPED = frozenset({"offline", "paused"})
"""Statuses of queues that run nothing; paused ones do so for a while."""


def site_state(attribute: str, queues: Collection[str]) -> str:
    """The state by the attribute `state` of the site and the statuses of its queues.

    All offline: Down. None takes new work: Draining. An attribute that is no word of submission closes the site, as elsewhere.
    """
    if attribute in SITE_OPEN | SITE_DRAINED | SITE_CLOSED:
        return attribute
    if attribute != BY_QUEUES:
        return DOWN
    if not queues or all(status == "offline" for status in queues):
        return DOWN
    return DRAINING if all(status == "brokeroff" or status in STOPPED for status in queues) else NORMAL
