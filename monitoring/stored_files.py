"""Outputs of jobs as they lie on storage, for pages: logs in pieces, small files whole.

Read as pilots read: through the root of an endpoint whose mark is there, and never through a link. A storage that hangs holds one
thread of a server process, not more. The streams of a log are read where they stand as plain files, else out of the archive.
"""

from __future__ import annotations

import math
import os
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel import clock
from brokerage.models import StorageEndpoint
from brokerage.pilot.connections import in_time, kept_connections
from brokerage.pilot.joblog import CUT_LINE
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.signed_urls import Grant, signed_url
from brokerage.pilot.storage_root import StorageDown, StorageRoot, file_below
from brokerage.queries.signed_places import storage_key
from monitoring.log_pieces import Pieces, Readable, in_order, pieces, plain_piece
from monitoring.queries.copies import Copy
from monitoring.queries.database import alias
from monitoring.queries.job import OutputRow
from monitoring.templatetags.show import size as in_words
from workqueues.rules.jobs.log_streams import STREAMS, stream_file

LARGEST = 10_000_000
"""Bytes of a file that the server passes on; larger ones come from the storage itself."""
LARGEST_STREAM = LARGEST + CUT_LINE
"""The same of a stream of a log."""
LINK_LIFE_S = 60
READ_S = 30.0
"""How long storage servers may take for all that a request reads of them."""
_READING = threading.BoundedSemaphore()


class Unreadable(Exception):
    """The server cannot read the file; the text says why."""


class TooLarge(Unreadable):
    """The server does not pass on so large a file."""


class _ReachedCopy(NamedTuple):
    """A copy that the server can look at: its endpoint, and the path there."""

    endpoint: StorageEndpoint
    path: str


def content(output: OutputRow, most: int = LARGEST) -> bytes:
    """A whole file of so many bytes at most. Raises Unreadable."""
    with _reading(output), _first_copy(*_reached(output), most) as file:
        if (there := os.fstat(file.fileno()).st_size) > most:
            raise _too_large(there, most)
        return file.read(most)


def log_pieces(output: OutputRow, begins: Mapping[str, int] | None = None, only: str = "") -> Pieces:
    """Of each stream of a log the piece that `begins` says, else its end; where they are plain files, of the stream `only` alone.

    Raises Unreadable.
    """
    names = [name for name in STREAMS if only in ("", name)]
    with _reading(output):
        copies, reasons = _reached(output)
        for copy in tuple(copies) if names else ():
            try:
                return _plain_pieces(copy, names, begins or {})
            except StorageDown as down:
                copies.remove(copy)
                reasons.append(str(down.strerror))
            except OSError:
                continue  # not there, or not all of them: the archive has them
        with _first_copy(copies, reasons, LARGEST) as file:
            return pieces(file, output.lfn, begins or {}, gdpconfig.value("storage", "LOG_UNPACK_MAX"))


def stream_of(log: OutputRow, stream: str) -> OutputRow | None:
    """A stream of a log as a file of its own; None: it is not stored as one. Raises Unreadable."""
    if stream not in STREAMS:
        return None
    with _reading(log):
        copies, reasons = _reached(log)
        for copy in copies:
            path = stream_file(copy.path, stream)
            try:
                with _plain(copy.endpoint, path) as (_, size):
                    place = (Copy(copy.endpoint.name, path),)
                    return replace(log, lfn=stream_file(log.lfn, stream), fsize=size, checksum="", copies=place)
            except StorageDown as down:
                reasons.append(str(down.strerror))
            except FileNotFoundError:
                continue
        if reasons:
            raise Unreadable(f"{'; '.join(reasons)}.")
        return None


def signed_link(output: OutputRow) -> str:
    """An address at a storage server that is good for reading this file for LINK_LIFE_S; empty where no server has it."""
    known = StorageEndpoint.objects.using(alias()).in_bulk([copy.storage for copy in output.copies])
    for copy in output.copies:
        endpoint = known.get(copy.storage)
        if endpoint is not None and endpoint.url and endpoint.root_state != "down":
            key = storage_key(endpoint.name, endpoint.key_number)
            grant = Grant("GET", copy.path, math.ceil(clock.now().timestamp() + LINK_LIFE_S))
            return signed_url(endpoint.url, key, grant)
    return ""


@contextmanager
def _reading(output: OutputRow) -> Iterator[None]:
    """One file at a time; what goes wrong with reading it is Unreadable."""
    if not _READING.acquire(timeout=2.0):
        raise Unreadable("Another file is being read just now; try again in a moment.")
    try:
        with kept_connections(), in_time(READ_S):
            yield
    except (OSError, tarfile.TarError, EOFError, zlib.error) as problem:
        raise Unreadable(f"{output.lfn} cannot be read: {problem}.") from problem
    finally:
        _READING.release()


def _reached(output: OutputRow) -> tuple[list[_ReachedCopy], list[str]]:
    """The copies that the server can look at, and why it cannot at the others."""
    copies, reasons = list[_ReachedCopy](), list[str]()
    known = StorageEndpoint.objects.using(alias()).in_bulk([copy.storage for copy in output.copies])
    for copy in output.copies:
        endpoint = known.get(copy.storage)
        if endpoint is None or not (endpoint.path or endpoint.url):
            reasons.append(f"{copy.storage} is neither reached as a directory nor by a server")
        elif endpoint.root_state == "down":
            reasons.append(f"storage {copy.storage} is down: {endpoint.root_fault}")
        else:
            copies.append(_ReachedCopy(endpoint, copy.path))
    return copies, reasons


def _first_copy(copies: Sequence[_ReachedCopy], reasons: list[str], most: int) -> IO[bytes]:
    """The first copy that can be opened."""
    for endpoint, path in copies:
        try:
            return _from_directory(endpoint, path) if endpoint.path else _from_server(endpoint, path, most)
        except StorageDown as down:
            reasons.append(str(down.strerror))
        except OSError as problem:
            reasons.append(f"{endpoint.name}: {problem.strerror or problem}")
    raise Unreadable(f"{'; '.join(reasons)}." if reasons else "No storage has a copy of it.")


def _from_directory(endpoint: StorageEndpoint, path: str) -> IO[bytes]:
    with StorageRoot(endpoint.name, Path(endpoint.path), endpoint.mark).opened() as folder:
        return os.fdopen(file_below(folder, path), "rb")


def _from_server(endpoint: StorageEndpoint, path: str, most: int) -> IO[bytes]:
    """The file, brought here first if it is not too large for a page."""
    root = _server_of(endpoint)
    if (there := root.head(path, summed=False).size) > most:
        raise _too_large(there, most)
    with tempfile.TemporaryDirectory() as folder:
        root.download(path, Path(folder) / "file")
        return (Path(folder) / "file").open("rb")


def _too_large(size: int, most: int) -> TooLarge:
    return TooLarge(f"It has {in_words(size)}; the server passes on {in_words(most)} at most.")


def _server_of(endpoint: StorageEndpoint) -> RemoteRoot:
    return RemoteRoot(endpoint.name, endpoint.url, storage_key(endpoint.name, endpoint.key_number))


def _plain_pieces(log: _ReachedCopy, names: Sequence[str], begins: Mapping[str, int]) -> Pieces:
    """Of these streams of a log, which are all plain files, the pieces. OSError where one of them is not there."""
    with ExitStack() as files:
        opened = [(name, *files.enter_context(_plain(log.endpoint, stream_file(log.path, name)))) for name in names]
        return Pieces(in_order([plain_piece(file, name, size, begins) for name, file, size in opened]), plain=True)


@contextmanager
def _plain(endpoint: StorageEndpoint, path: str) -> Iterator[tuple[Readable, int]]:
    """A plain file to be read where a piece of it is, and its size."""
    if endpoint.path:
        with _from_directory(endpoint, path) as file:
            yield file, os.fstat(file.fileno()).st_size
    else:
        root = _server_of(endpoint)
        size = root.head(path, summed=False).size
        yield _FileAtServer(root, path, size), size


class _FileAtServer:
    """A file at a storage server, of which only what is read is brought here."""

    def __init__(self, root: RemoteRoot, path: str, size: int) -> None:
        self._root, self._path, self._size, self._at = root, path, size, 0

    def seek(self, offset: int) -> None:
        """Read on from there."""
        self._at = offset

    def read(self, size: int) -> bytes:
        """So many bytes, fewer at the end."""
        size = min(size, self._size - self._at)
        piece = self._root.piece(self._path, self._at, size) if size > 0 else b""
        self._at += len(piece)
        return piece
