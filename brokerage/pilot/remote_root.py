"""The root of a storage endpoint that is reached by its server alone, as the broker and movers look at it.

It has the questions of `StorageRoot`, and signs its own addresses. That its mark is there its server sees to.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brokerage.pilot import remote_storage
from brokerage.pilot.copying import Sum
from brokerage.pilot.remote_storage import Check, Download, RemoteFile, no_check
from brokerage.pilot.signed_urls import LISTING, MOST_BYTES, Grant, signed_url
from brokerage.pilot.storage_root import StorageDown

LIFE_S = 3600.0
"""How long an address of ours is good: longer than the largest file takes to begin, and clocks may differ."""
SERVED = "served"
"""The mark of a root whose server looks after it."""


@dataclass(frozen=True)
class RemoteRoot:
    """Name of the endpoint, address of its server, and the key that its addresses are signed with."""

    name: str
    url: str
    key: str = field(repr=False)
    mark: str = SERVED

    def fault(self) -> str:
        """Why the storage is down; empty when it is there."""
        try:
            return str(self.look()["fault"])
        except (StorageDown, PermissionError) as problem:
            return str(problem.strerror)

    def look(self) -> dict[str, Any]:
        """How it is, as its server tells: fault, writable, free and size in bytes. StorageDown, PermissionError (another key)."""
        return remote_storage.look(self.name, self.address("GET", ""))

    def measure(self, path: str, size: int) -> tuple[int, str] | None:
        """Size of a file and its adler32; None: there is none. OSError when it cannot be read."""
        try:
            found = self.head(path, summed=size >= 0)
        except FileNotFoundError:
            return None
        return found.size, found.checksum

    def head(self, path: str, *, summed: bool = True) -> RemoteFile:
        """What stands under a name; where no file has to be read for it, the answer comes soon or not at all."""
        seconds = remote_storage.ANSWER_S if summed else remote_storage.SILENT_S
        return remote_storage.head(self.name, self.address("GET", path), summed=summed, seconds=seconds)

    def piece(self, path: str, begin: int, size: int) -> bytes:
        """So many bytes of a file from `begin` on, fewer at its end."""
        return remote_storage.piece(self.name, self.address("GET", path), begin, size)

    def download(self, path: str, target: Path) -> Sum:
        """Bring a file to the new file `target`."""
        return remote_storage.download(self.name, self.address("GET", path), target)

    def content(self, path: str, check: Check = no_check) -> Download:
        """A file that is to be brought from there chunk by chunk."""
        return Download(self.name, self.address("GET", path), check)

    def send(self, path: str, chunks: Iterator[bytes], size: int, checksum: str, check: Check = no_check) -> RemoteFile:
        """Bring a file there; the same content under the name is good, other content raises FileExistsError."""
        return remote_storage.send(self.name, self.address("PUT", path), chunks, size, checksum, check)

    def remove(self, path: str, size: int | None = None) -> int:
        """Remove a file, if it has this size where one is told: how many were there."""
        try:
            return remote_storage.delete(self.name, self.address("DELETE", path), size=size)
        except FileNotFoundError:
            return 0

    def files(self) -> Iterator[tuple[str, int, float]]:
        """Path, size and age in seconds of every file; OSError when not all of them can be told."""
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "list"
            remote_storage.download(self.name, self.address(LISTING, ""), target)
            with target.open("rb") as lines:
                for line in lines:
                    path, size, age = json.loads(line)
                    yield str(path), int(size), float(age)

    def address(self, method: str, path: str) -> str:
        """A signed address of the broker's own."""
        return signed_url(self.url, self.key, Grant(method, path, int(time.time() + LIFE_S), size=MOST_BYTES))
