"""Jobs handed to pilots that ask at the same time: one transaction and one round trip for all, documents included."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db import DatabaseError, IntegrityError, InterfaceError

from broker_site.foundation.sql.prepared import Call, run_together, was_undone
from brokerage.ledger.lease import Ask, leasing, leasing_again
from brokerage.ledger.pilots import end_idling
from brokerage.queries.job_document import LeasedJob, Untold, jobs_of_asks, leased_jobs

logger = logging.getLogger(__name__)


def hand_out(asks: Sequence[Ask], noting: Sequence[Call] = ()) -> list[list[LeasedJob] | Untold]:
    """What each of these asks, of different pilots, gets: ready jobs, or those it got before and that are still only sent.

    `noting`: what notes the leases, in the same transaction.
    """
    in_order = sorted(asks, key=lambda ask: ask.pilot)  # so that two with the same pilots never wait for each other in a ring
    try:
        rows = run_together([*leasing(in_order), *noting, jobs_of_asks([(ask.pilot, ask.request) for ask in asks])])
    except IntegrityError:
        # An ask, or another one of the same pilot, has just got its job through another process, or another match has just taken
        # what a limit had left: it gets none, others as ever.
        return [[]] if len(asks) == 1 else _one_by_one(asks)
    jobs = leased_jobs(rows, len(asks))
    try:
        end_idling([ask.pilot for ask, some in zip(asks, jobs, strict=True) if some])
    except (DatabaseError, InterfaceError):
        logger.warning("slots that got jobs are noted as idle until they are looked at again", exc_info=True)
    return jobs


def _one_by_one(asks: Sequence[Ask]) -> list[list[LeasedJob] | Untold]:
    """What each gets by itself. After a fault of the database nothing more is asked of it."""
    jobs: list[list[LeasedJob] | Untold] = []
    for ask in asks:
        try:
            jobs += hand_out([ask])
        except (DatabaseError, InterfaceError) as fault:
            jobs.append(Untold(fault, used=not was_undone(fault)))
            return jobs + [Untold(fault, used=False)] * (len(asks) - len(jobs))
    return jobs


def handed_out_before(pilot: UUID, request: UUID) -> list[LeasedJob]:
    """The jobs that this very ask got before, if its answer was lost and they are still only sent; their leases are prolonged."""
    (jobs,) = leased_jobs(run_together([leasing_again(pilot, request), jobs_of_asks([(pilot, request)])]), 1)
    if isinstance(jobs, Untold):
        raise jobs.fault
    return jobs
