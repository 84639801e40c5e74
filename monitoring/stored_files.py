"""Outputs of jobs as they lie on storage, for pages: logs in pieces, small files whole.

Read as pilots read: through the root of an endpoint whose mark is there, and never through a link. A storage that hangs holds one
thread of a server process, not more.
"""

from __future__ import annotations

import math
import os
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel import clock
from brokerage.models import StorageEndpoint
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.signed_urls import Grant, signed_url
from brokerage.pilot.storage_root import StorageDown, StorageRoot, file_below
from brokerage.queries.signed_places import storage_key
from monitoring.log_pieces import Pieces, pieces
from monitoring.queries.database import alias
from monitoring.queries.job import OutputRow
from monitoring.templatetags.show import size as in_words

LARGEST = 10_000_000
"""Bytes of a file that the server passes on; larger ones come from the storage itself."""
LINK_LIFE_S = 60
_READING = threading.BoundedSemaphore()


class Unreadable(Exception):
    """The server cannot read the file; the text says why."""


class TooLarge(Unreadable):
    """The server does not pass on so large a file."""


def content(output: OutputRow) -> bytes:
    """A whole file. Raises Unreadable."""
    with _opened(output) as file:
        if (there := os.fstat(file.fileno()).st_size) > LARGEST:
            raise TooLarge(f"It has {in_words(there)}; the server passes on {in_words(LARGEST)} at most.")
        return file.read(LARGEST)


def log_pieces(output: OutputRow, begins: Mapping[str, int] | None = None) -> Pieces:
    """Of each stream of a log the piece that `begins` says, else its end. Raises Unreadable."""
    with _opened(output) as file:
        return pieces(file, output.lfn, begins or {}, gdpconfig.value("storage", "LOG_UNPACK_MAX"))


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
        raise TooLarge(f"It has {in_words(there)}; the server passes on {in_words(LARGEST)} at most.")
    with tempfile.TemporaryDirectory() as folder:
        root.download(path, Path(folder) / "file")
        return (Path(folder) / "file").open("rb")
