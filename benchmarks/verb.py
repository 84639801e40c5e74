"""The verb by which pilots ask for jobs, without its HTTP. Imported once Django is ready."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.tokens import mint_job_token
from broker_site.foundation.sql.prepared import run_together
from brokerage.api.matching import PilotMatch, resource_of
from brokerage.ledger.lease import HeldAtMost, leasing
from brokerage.queries.pilots import QUEUES
from brokerage.rules.dispatch.pilot_messages import read_ask

LEASE_S = 7200.0


def match(said: dict[str, Any], principal: Principal, pilot: UUID, most: HeldAtMost) -> PilotMatch:
    """An ask as the verb reads it."""
    queue, ask = QUEUES.named(principal.queue), read_ask(said)
    assert queue is not None
    return PilotMatch(principal, pilot, queue, ask, resource_of(principal, queue, ask), most)


def take(said: dict[str, Any], principal: Principal, pilot: UUID, most: HeldAtMost) -> tuple[int, int] | None:
    """The job that an ask gets, with the epoch of its lease: without the job's document."""
    asking = match(said, principal, pilot, most)
    for one in asking.asks:
        for job_id, epoch in run_together(leasing([one])):
            asking.got(1)
            return job_id, epoch
    asking.got(0)
    return None


def take_with_token(said: dict[str, Any], principal: Principal, pilot: UUID, most: HeldAtMost) -> str | None:
    """The token of the job that an ask gets."""
    taken = take(said, principal, pilot, most)
    return mint_job_token(*taken, LEASE_S) if taken else None
