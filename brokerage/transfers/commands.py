"""What operators do with transfers: cancel them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from brokerage.ledger.transfers.ends import end_unmet
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import Transfer
from brokerage.states import TRANSFER
from brokerage.transfers.choice import backends


def cancel_transfers(transfers: Sequence[int], who: str, why: str) -> int:
    """Cancel transfers, outside of a transaction: how many are cancelled or will be.

    Queued ones end at once. Those under way end when their backend gave them up; one that is done before stays done.
    """
    moves = [TransferMove(id_, why, reason="operator") for id_ in transfers]
    ended = end_unmet(moves, "cancelled", who, sources=["queued"])
    by_backend: dict[str, list[UUID]] = defaultdict(list)
    rows = Transfer.objects.filter(id__in=transfers, status__in=list(TRANSFER.active), key__isnull=False)
    for backend, key in rows.values_list("backend", "key"):
        if key is not None:
            by_backend[backend].append(key)
    known = backends()
    for name in by_backend.keys() & known.keys():
        known[name].cancel(by_backend[name])
    return len(ended) + sum(map(len, by_backend.values()))
