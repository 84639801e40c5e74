"""A job that must be there, in the hands of a new pilot."""

from __future__ import annotations

from brokerage.ledger.lease import Lease
from brokerage.models import ComputingQueue
from tests.flow.steps import take


def taken(queue: ComputingQueue, lease_s: float = 60) -> Lease:
    """The next job of the queue, running."""
    leased = take(queue, lease_s)
    assert leased is not None
    return leased
