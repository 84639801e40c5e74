"""Taking transfers to work on: those whose turn has come, and those under way of which it is time to ask.

One agent at a time begins transfers: who counts what is under way must not be overtaken by another who does. What is taken is
held by `claimed_until`, so that who is killed holds nothing up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction

from broker_site.foundation.sql.prepared import Prepared
from brokerage.rules.transfers.attempts import Attempt
from brokerage.rules.transfers.plan import Due
from brokerage.rules.transfers.room import Waiting
from brokerage.states import TRANSFER

_BEGIN = "SELECT pg_try_advisory_xact_lock(hashtext('brokerage_transfer beginning'))"
_SETTLE = "SELECT pg_try_advisory_xact_lock(hashtext('brokerage_transfer settling'))"

_DUE = Prepared(
    "lock_due_transfers",
    "bigint[]",
    """
    WITH mine AS (
        SELECT id FROM brokerage_transfer WHERE id = ANY($1) AND status = 'queued' AND next_at IS NULL
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT t.id, t.file_id, t.failed_sources,
        EXISTS (SELECT FROM brokerage_transferwish w WHERE w.transfer_id = t.id AND w.closed_at IS NULL),
        coalesce((SELECT r.state FROM workqueues_replica r WHERE r.file_id = t.file_id AND r.storage = t.destination), ''),
        t.attempt, t.vo
    FROM brokerage_transfer t JOIN mine USING (id) ORDER BY t.id
    """,
)
_OVERDUE = Prepared(
    "claim_overdue_transfers",
    "int, float8",
    f"""
    WITH due AS (
        SELECT id FROM brokerage_transfer WHERE status IN ({TRANSFER.active.sql}) AND claimed_until < now()
        ORDER BY claimed_until LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE brokerage_transfer t SET claimed_until = now() + make_interval(secs => $2) FROM due WHERE t.id = due.id
    RETURNING t.id, t.key, t.status, t.backend, t.bytes, extract(epoch FROM now() - t.status_since)::float8
    """,
)
_BY_KEY = Prepared(
    "transfers_by_key",
    "text[]",
    f"""
    SELECT t.id, t.key, t.source_site, t.destination_site, t.source, t.attempt, t.failed_sources
    FROM unnest($1::uuid[]) AS g(key) JOIN brokerage_transfer t ON t.key = g.key
    WHERE t.status IN ({TRANSFER.active.sql})
    """,
)


@contextmanager
def beginning() -> Iterator[bool]:
    """A transaction in which transfers may begin; False: another one is doing that now."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_BEGIN)
            mine = bool(cursor.fetchone()[0])
        yield mine


@contextmanager
def settling() -> Iterator[bool]:
    """A transaction in which ends are written down; False: another one is doing that now, most likely of the same."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_SETTLE)
            mine = bool(cursor.fetchone()[0])
        yield mine


@dataclass(frozen=True, slots=True)
class TurnCome:
    """A transfer that is locked. `attempt`: those begun so far."""

    due: Due
    attempt: int
    vo: str


def lock_due(waiting: Sequence[Waiting]) -> list[TurnCome]:
    """Lock those that are still due and that nobody else has, until the caller's transaction ends."""
    by_id = {one.id: one for one in waiting}
    return [
        TurnCome(Due(by_id[id_], file_id, failed, wished, there), attempt, vo)
        for id_, file_id, failed, wished, there, attempt, vo in _DUE.run(list(by_id))
    ]


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A transfer under way of which it is time to ask. `for_s`: how long it has been in its state."""

    id: int
    key: UUID
    status: str
    backend: str
    bytes: int
    for_s: float


def claim_overdue(most: int, seconds: float) -> list[UnderWay]:
    """Those whose claim is over, or of which nothing was heard since the last question; others leave them for `seconds`."""
    return [UnderWay(*row) for row in _OVERDUE.run(most, seconds)]


@dataclass(frozen=True, slots=True)
class Keyed:
    """A transfer under way by the key of its attempt."""

    id: int
    source_site: str
    destination_site: str
    attempt: Attempt


def by_key(keys: Sequence[UUID]) -> dict[UUID, Keyed]:
    """The transfers under way that have these keys."""
    rows = _BY_KEY.run([str(key) for key in keys])
    return {
        key: Keyed(id_, source_site, site, Attempt(number, key, source, failed))
        for id_, key, source_site, site, source, number, failed in rows
    }
