"""The backend `local`: copies between the directories of storage endpoints, made by movers (`manage.py mover`).

The agent only writes rows; it never touches storage, so a root that hangs holds up no agent.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from uuid import UUID

from brokerage.ledger.transfers.local_copies import (
    CopyRow,
    cancel_copies,
    ended_copies,
    find_copies,
    forget_copies,
    order_copies,
)
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import StorageRoot
from brokerage.queries.pilots import storage_roots
from brokerage.transfers.port import CopyOrder, CopyReport, CopyState, Refusal, StoredCopy

LONGEST_PATH = 1024
DELETE_S = 20.0
"""How long the removal of copies from one endpoint may take before the others are told of as still there."""


def path_fault(path: str) -> str:
    """Why a path cannot be one below an endpoint; empty where it can."""
    parts = PurePosixPath(path)
    if not path or len(path) > LONGEST_PATH or "\x00" in path:
        return "its path is empty, too long, or has a zero byte"
    if parts.is_absolute() or ".." in parts.parts or parts.name in ("", ".", ".."):
        return "its path leads out of the storage endpoint"
    return ""


class Local:
    """Orders, and looks after, the rows of copies that movers make."""

    name = "local"

    def __init__(self) -> None:
        self._busy: set[str] = set()

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
        roots, by_storage = storage_roots(), defaultdict(list)
        for copy in copies:
            by_storage[copy.storage].append(copy)
        left: dict[StoredCopy, str] = {}
        removals: list[_Removal] = []
        for storage, of_storage in by_storage.items():
            if storage not in roots or storage in self._busy:
                why = "it does not answer" if storage in self._busy else "it has no directory that the broker reaches"
                left |= dict.fromkeys(of_storage, f"{storage}: {why}")
                continue
            self._busy.add(storage)
            removals.append(_Removal(roots[storage], of_storage, self._busy))
        for removal in removals:
            removal.start()
        for removal in removals:
            removal.join(DELETE_S)
            left |= dict(removal.left)
        return left


class _Removal(threading.Thread):
    """Removes copies from one endpoint. `left`: those that may still be there, at first all."""

    def __init__(self, root: StorageRoot | RemoteRoot, copies: Sequence[StoredCopy], busy: set[str]) -> None:
        super().__init__(daemon=True)
        self._root, self._copies, self._busy = root, copies, busy
        self.left: dict[StoredCopy, str] = dict.fromkeys(copies, f"{root.name} did not answer in time")

    def run(self) -> None:
        try:
            if isinstance(self._root, RemoteRoot):
                faults = {copy: self._remove_by_server(self._root, copy) for copy in self._copies}
            else:
                with self._root.opened() as opened:
                    faults = {copy: self._remove(opened, copy) for copy in self._copies}
            self.left = {copy: fault for copy, fault in faults.items() if fault}
        except OSError as problem:
            self.left = dict.fromkeys(self._copies, f"{self._root.name}: {problem.strerror or problem}")
        finally:
            self._busy.discard(self._root.name)

    def _remove_by_server(self, root: RemoteRoot, copy: StoredCopy) -> str:
        if fault := path_fault(copy.path):
            return fault
        root.remove(copy.path)
        return ""

    def _remove(self, opened: Path, copy: StoredCopy) -> str:
        if fault := path_fault(copy.path):
            return fault
        try:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                (opened / copy.path).unlink()
        except OSError as problem:
            return f"{self._root.name}: {problem.strerror or problem}"
        return ""


def _report(row: CopyRow) -> CopyReport:
    state: CopyState = "done" if row.status == "done" else "failed" if row.status == "failed" else "under way"
    return CopyReport(row.key, state, row.reason, row.message, row.copied)
