"""How a mover reaches an endpoint: by its directory, or where that is not there by its server. And copies to a server.

Not here: copies to a directory (`batch`), and what is said over HTTP (`brokerage.pilot.remote_storage`).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from brokerage.ledger.transfers.local_copies import Endpoint
from brokerage.mover.files import Content, CopyFailed, Passing, blaming, judge_source, open_source
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.remote_storage import chunks_of
from brokerage.pilot.storage_root import StorageRoot
from brokerage.queries.signed_places import storage_key


@contextmanager
def reached(endpoint: Endpoint, down: str) -> Iterator[Path | RemoteRoot]:
    """The opened directory of an endpoint, or what its server serves. Raises StorageDown, CopyFailed."""
    root = StorageRoot(endpoint.name, Path(endpoint.path), endpoint.mark)
    if endpoint.path and not (endpoint.url and root.fault()):
        with root.opened() as opened:
            yield opened
    elif endpoint.url:
        yield RemoteRoot(endpoint.name, endpoint.url, storage_key(endpoint.name, endpoint.key_number))
    else:
        raise CopyFailed(down, f"{endpoint.name} has neither a directory nor a server that the mover reaches")


def chunks_from(source: RemoteRoot, path: PurePosixPath, content: Content, passing: Passing) -> Iterator[bytes]:
    """A file from a server, chunk by chunk. CopyFailed instead of the last one where it is not what the catalogue says."""
    with blaming(source.name, "src_down"):
        coming = source.content(str(path), passing.check)
        for chunk in coming.chunks():
            if coming.whole != content.bytes:
                raise CopyFailed("source_corrupt", f"{source.name}: it has {coming.whole} bytes, not {content.bytes}")
            passing.passing(len(chunk))
            if coming.size == content.bytes:
                judge_source(source.name, coming.size, coming.adler, content)
            yield chunk
        judge_source(source.name, coming.size, coming.adler, content)


def send_copy(
    source: Path | RemoteRoot,
    source_path: PurePosixPath,
    read_from: str,
    destination: RemoteRoot,
    path: PurePosixPath,
    content: Content,
    passing: Passing,
) -> None:
    """Make a copy at a server, chunk by chunk; the server gives it its name once it stands on its disk and was read back."""
    passing.check()
    if isinstance(source, RemoteRoot):
        _send(chunks_from(source, source_path, content, passing), destination, path, content, passing)
        return
    fd = open_source(source / source_path, read_from, content)
    try:
        _send(_chunks_of(fd, read_from, content, passing), destination, path, content, passing)
    finally:
        os.close(fd)


def _chunks_of(fd: int, read_from: str, content: Content, passing: Passing) -> Iterator[bytes]:
    """An open source file, chunk by chunk. CopyFailed instead of the last one where it is not what the catalogue says."""
    adler, size = 1, 0
    with blaming(read_from, "src_down"):
        for chunk in chunks_of(fd, content.bytes):
            passing.passing(len(chunk))
            adler, size = zlib.adler32(chunk, adler), size + len(chunk)
            if size == content.bytes:
                judge_source(read_from, size, adler, content)
            yield chunk


def _send(chunks: Iterator[bytes], to: RemoteRoot, path: PurePosixPath, content: Content, passing: Passing) -> None:
    try:
        stands = to.send(str(path), chunks, content.bytes, content.checksum, passing.check)
    except FileExistsError as taken:
        raise CopyFailed("refused", f"{to.name}: another file stands under the name {path.name}") from taken
    if (stands.size, stands.checksum) != (content.bytes, content.checksum):
        raise CopyFailed("checksum", f"{to.name}: what was read back is not what was sent")
