"""Queued transfers that end without an attempt: nobody wants them any more, or they waited too long."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger.transfers.ends import end_unmet
from brokerage.ledger.transfers.moves import TransferMove

_RELEASED = Prepared(
    "released_wishes", "int", "SELECT id, transfer_id FROM brokerage_transferwish WHERE released ORDER BY id LIMIT $1"
)
_LOCK = Prepared(
    "lock_queued_transfers",
    "bigint[]",
    """
    SELECT id FROM brokerage_transfer WHERE id = ANY($1) AND ended_at IS NULL ORDER BY id FOR NO KEY UPDATE
    """,
)
_UNWISHED = Prepared(
    "unwished_transfers",
    "bigint[]",
    """
    SELECT t.id FROM brokerage_transfer t WHERE t.id = ANY($1) AND t.status = 'queued'
        AND NOT EXISTS (SELECT FROM brokerage_transferwish w WHERE w.transfer_id = t.id AND w.closed_at IS NULL)
    ORDER BY t.id
    """,
)
_LOOKED_AT = Prepared(
    "looked_at_released_wishes", "bigint[]", "UPDATE brokerage_transferwish SET released = false WHERE id = ANY($1)"
)
_OLD = Prepared(
    "old_transfers",
    "bool, float8, int",
    """
    SELECT id FROM brokerage_transfer
    WHERE status = 'queued' AND tape = $1 AND created_at < now() - make_interval(secs => $2)
    ORDER BY created_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
    """,
)


def cancel_unwished(most: int, who: str) -> int:
    """Cancel queued transfers whose wishes were given up, unless somebody else has one: how many wishes were looked at."""
    with transaction.atomic():
        released = _RELEASED.run(most)
        if released:
            cancel_without_wish(sorted({transfer for _, transfer in released}), who)
            _LOOKED_AT.run([id_ for id_, _ in released])
    return len(released)


def cancel_without_wish(transfers: Sequence[int], who: str) -> list[int]:
    """Cancel those of these that are queued and that nobody wants: which.

    A wish that comes meanwhile waits for the lock on the transfer, and finds it ended or is seen here.
    """
    with transaction.atomic():
        _LOCK.run(list(transfers))
        unwished = [id_ for (id_,) in _UNWISHED.run(list(transfers))]
        moves = [TransferMove(id_, "nobody wants it any more", reason="no_wish") for id_ in unwished]
        return end_unmet(moves, "cancelled", who, sources=["queued"])


def fail_old(tape: bool, age_s: float, most: int, who: str) -> int:
    """Give up transfers that have been queued for so long: how many."""
    with transaction.atomic():
        old = [id_ for (id_,) in _OLD.run(tape, age_s, most)]
        why = f"it was not brought within {age_s / 3600:g} h"
        return len(end_unmet([TransferMove(id_, why, reason="expired") for id_ in old], "failed", who, sources=["queued"]))
