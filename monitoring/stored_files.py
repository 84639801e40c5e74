"""Outputs of jobs as they lie on storage, for pages: logs in pieces, small files whole.

Read as pilots read: through the root of an endpoint whose mark is there, and never through a link. A storage that hangs holds one
thread of a server process, not more.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from brokerage.models import StorageEndpoint
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import StorageDown, StorageRoot, file_below
from brokerage.queries.signed_places import storage_key
from monitoring.queries.database import alias
from monitoring.queries.job import OutputRow
from monitoring.templatetags.show import size as in_words

LARGEST = 10_000_000
"""Bytes of a file that the server passes on; larger ones are for those who reach the storage."""
PIECE = 64_000
"""Bytes of each stream of a log that a page shows: its end."""
LARGEST_STREAM = 2_000_000
MOST_STREAMS = 10
LARGEST_ARCHIVE = MOST_STREAMS * LARGEST_STREAM
"""Bytes that a log may unpack to; a few on storage can stand for any number."""

_READING = threading.BoundedSemaphore()


class Unreadable(Exception):
    """The server cannot read the file; the text says why."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One file of a log: the text at its end, and how many bytes before it are left out."""

    name: str
    text: str
    left_out: int = 0


def content(output: OutputRow) -> bytes:
    """A whole file. Raises Unreadable."""
    with _opened(output) as file:
        if (there := os.fstat(file.fileno()).st_size) > LARGEST:
            raise Unreadable(f"It has {in_words(there)}; the server passes on {in_words(LARGEST)} at most.")
        return file.read(LARGEST)


def log_streams(output: OutputRow) -> list[Stream]:
    """What is in the archive of a log, standard error first. Raises Unreadable."""
    streams: list[Stream] = []
    with _opened(output) as file, _Unpacked(fileobj=file) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for entry in archive:
            if len(streams) == MOST_STREAMS or entry.size > LARGEST_STREAM:
                break
            if (stream := archive.extractfile(entry)) is not None:
                text = stream.read()
                streams.append(Stream(entry.name, text[-PIECE:].decode("utf-8", "replace"), max(len(text) - PIECE, 0)))
    return sorted(streams, key=lambda each: (each.name != "stderr", each.name != "stdout"))


class _Unpacked(gzip.GzipFile):
    """What an archive unpacks to, as far as the server reads it: also its headers may be of any size."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= LARGEST_ARCHIVE:
            raise OSError(f"it unpacks to more than {in_words(LARGEST_ARCHIVE)}")
        return super().read(size)


@contextmanager
def _opened(output: OutputRow) -> Iterator[IO[bytes]]:
    """The first copy that can be opened; what goes wrong with reading it is Unreadable too."""
    if not _READING.acquire(timeout=2.0):
        raise Unreadable("Another file is being read just now; try again in a moment.")
    try:
        with _first_copy(output) as file:
            yield file
    except (OSError, tarfile.TarError, EOFError, zlib.error) as problem:
        raise Unreadable(f"{output.lfn} cannot be read: {problem}.") from problem
    finally:
        _READING.release()


def _first_copy(output: OutputRow) -> IO[bytes]:
    reasons = []
    known = StorageEndpoint.objects.using(alias()).in_bulk([copy.storage for copy in output.copies])
    for copy in output.copies:
        endpoint = known.get(copy.storage)
        if endpoint is None or not (endpoint.path or endpoint.url):
            reasons.append(f"{copy.storage} is neither reached as a directory nor by a server")
        elif endpoint.root_state == "down":
            reasons.append(f"storage {copy.storage} is down: {endpoint.root_fault}")
        else:
            try:
                return _from_directory(endpoint, copy.path) if endpoint.path else _from_server(endpoint, copy.path)
            except StorageDown as down:
                reasons.append(str(down.strerror))
            except OSError as problem:
                reasons.append(f"{copy.storage}: {problem.strerror or problem}")
    raise Unreadable(f"{'; '.join(reasons)}." if reasons else "No storage has a copy of it.")


def _from_directory(endpoint: StorageEndpoint, path: str) -> IO[bytes]:
    with StorageRoot(endpoint.name, Path(endpoint.path), endpoint.mark).opened() as folder:
        return os.fdopen(file_below(folder, path), "rb")


def _from_server(endpoint: StorageEndpoint, path: str) -> IO[bytes]:
    """The file, brought here first if it is not too large for a page."""
    root = RemoteRoot(endpoint.name, endpoint.url, storage_key(endpoint.name, endpoint.key_number))
    if (there := root.head(path, summed=False).size) > LARGEST:
        raise OSError(f"it has {in_words(there)}; the server passes on {in_words(LARGEST)} at most")
    with tempfile.TemporaryDirectory() as folder:
        root.download(path, Path(folder) / "file")
        return (Path(folder) / "file").open("rb")
