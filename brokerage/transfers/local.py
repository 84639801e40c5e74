"""The backend `local`: copies between storage endpoints, made by movers (`manage.py mover`).

The agent only writes rows; it never touches storage, so a root that hangs holds up no agent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from uuid import UUID

from broker_site.foundation import gdpconfig
from brokerage.ledger.transfers.local_copies import (
    CopyRow,
    cancel_copies,
    ended_copies,
    find_copies,
    forget_copies,
    order_copies,
)
from brokerage.queries.pilots import storage_roots
from brokerage.transfers.copy_removal import path_fault, remove_copies
from brokerage.transfers.patience import StorageThreads
from brokerage.transfers.port import CopyOrder, CopyReport, CopyState, Refusal, StoredCopy


class Local:
    """Orders, and looks after, the rows of copies that movers make."""

    name = "local"

    def __init__(self) -> None:
        self._removals: StorageThreads[list[str]] = StorageThreads()

    def submit(self, orders: Sequence[CopyOrder]) -> Mapping[UUID, Refusal]:
        """Write them down; refused is a path that leads out of its endpoint."""
        faults = {o.key: path_fault(o.source_path) or path_fault(o.destination_path) for o in orders}
        order_copies(
            [
                (
                    *(str(o.key), o.source, o.source_path, o.destination, o.destination_path),
                    *(o.bytes, o.checksum, o.mb_per_s, o.urgency),
                )
                for o in orders
                if not faults[o.key]
            ]
        )
        return {key: Refusal("refused", fault) for key, fault in faults.items() if fault}

    def find(self, keys: Collection[UUID]) -> Mapping[UUID, CopyReport]:
        """How these are."""
        return {row.key: _report(row) for row in find_copies(keys)}

    def ended(self, most: int) -> Sequence[CopyReport]:
        """Those that movers are through with."""
        return [_report(row) for row in ended_copies(most)]

    def cancel(self, keys: Collection[UUID]) -> None:
        """The mover removes what it wrote."""
        cancel_copies(keys)

    def forget(self, keys: Collection[UUID]) -> None:
        """Their rows go."""
        forget_copies(keys)

    def delete(self, copies: Collection[StoredCopy]) -> Mapping[StoredCopy, str]:
        """Remove copies, at each endpoint in a thread of its own: one that hangs is told of, and left alone until it is back."""
        roots, patience_s, by_storage = storage_roots(), gdpconfig.value("transfers", "REMOVAL_PATIENCE"), defaultdict(list)
        for copy in copies:
            by_storage[copy.storage].append(copy)
        works = {
            storage: partial(remove_copies, roots[storage], [copy.path for copy in there], patience_s)
            for storage, there in by_storage.items()
            if storage in roots
        }
        faults = {copy: f"{copy.storage}: nothing reaches it" for copy in copies if copy.storage not in roots}
        for storage, told in self._removals.run(works, patience_s).items():
            if isinstance(told, Exception):
                fault = str(getattr(told, "strerror", None) or told) or type(told).__name__
                faults |= dict.fromkeys(by_storage[storage], fault)
            else:
                faults |= zip(by_storage[storage], told, strict=True)
        return {copy: fault for copy, fault in faults.items() if fault}


def _report(row: CopyRow) -> CopyReport:
    state: CopyState = "done" if row.status == "done" else "failed" if row.status == "failed" else "under way"
    return CopyReport(row.key, state, row.reason, row.message, row.copied)
