"""Files that go out: opened below the marked root, their checksums, and what is told of the storage itself.

All of it blocks: the application calls it from threads. Nothing here speaks HTTP.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from brokerage.pilot.copying import Identity
from brokerage.pilot.storage_root import StorageDown, adler32, file_below
from brokerage.storage_server.served import Served, etag, parts_of

SMALL = 1 << 18
"""A piece up to this size is read at once; of a larger one the file is given to granian."""
MOST_SUMS = 100_000


class Piece(NamedTuple):
    """What is read of a file: which file it is, from where to where, its bytes (small) or its open descriptor, its checksum."""

    file: Identity
    begin: int
    end: int
    content: bytes | None
    fd: int
    checksum: str


class BadRange(ValueError):
    """There is nothing in this range of the file. `size`: that of the file."""

    def __init__(self, size: int) -> None:
        super().__init__("the file has no such bytes")
        self.size = size


class OtherFile(Exception):
    """The file is another one than the request wants to go on with."""


class TooLarge(Exception):
    """The file is larger than the address allows."""


class Sums:
    """Checksums of files that were read, kept as long as it is the same file that was not written to."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, Identity], str] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, fd: int) -> str:
        """The checksum if it is kept; else empty."""
        with self._lock:
            return self._kept.get(_key(fd), "")

    def of(self, fd: int) -> str:
        """The checksum; the file is read if it is not kept."""
        if not (found := self.known(fd)):
            before = _key(fd)
            found = adler32(fd)
            if _key(fd) == before:
                with self._lock:
                    self._kept[before] = found
                    while len(self._kept) > MOST_SUMS:
                        self._kept.popitem(last=False)
        return found


def _key(fd: int) -> tuple[int, Identity]:
    status = os.fstat(fd)
    return status.st_dev, Identity(status.st_ino, status.st_size, status.st_mtime_ns)


def open_piece(served: Served, name: str, most: int, wanted: str, etag_wanted: str, sums: Sums) -> Piece:
    """A file or the range of it that a header names. FileNotFoundError, StorageDown, BadRange, OtherFile, TooLarge, OSError."""
    with served.root.opened() as root:
        fd = file_below(root, "/".join(parts_of(name)))
        try:
            (_, file), checksum = _key(fd), sums.known(fd)
            if file.size > most:
                raise TooLarge
            if etag_wanted and etag(file) != etag_wanted:
                raise OtherFile
            begin, end = _range(wanted, file.size)
            content = _read(fd, begin, end) if end - begin <= SMALL else None
        except BaseException:
            os.close(fd)
            raise
    if content is not None:
        os.close(fd)
    return Piece(file, begin, end, content, fd, checksum)


def measured(served: Served, name: str, most: int, sums: Sums, *, summed: bool) -> tuple[Identity, str]:
    """Which file stands under a name, and its checksum (empty where it is not `summed` and not known)."""
    with served.root.opened() as root:
        fd = file_below(root, "/".join(parts_of(name)))
        try:
            file = _key(fd)[1]
            if file.size > most:
                raise TooLarge
            return file, sums.of(fd) if summed else sums.known(fd)
        finally:
            os.close(fd)


def state_of(served: Served) -> dict[str, object]:
    """How the root is at this moment."""
    try:
        with served.root.opened() as root:
            disk = os.statvfs(root)
            writable = not disk.f_flag & os.ST_RDONLY and os.access(root, os.W_OK)
            free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
            return {"name": served.root.name, "fault": "", "writable": writable, "free": free, "size": size}
    except StorageDown as down:
        return {"name": served.root.name, "fault": str(down.strerror), "writable": False, "free": 0, "size": 0}


def listing(served: Served) -> Iterator[bytes]:
    """A JSON line [path, size, age in seconds] for every file below the root. OSError: a folder cannot be read."""
    with served.root.opened() as root:
        for path, size, age in served.root.files(root):
            yield json.dumps([path, size, round(age, 3)]).encode() + b"\n"


def _read(fd: int, begin: int, end: int) -> bytes:
    parts = []
    while begin < end and (part := os.pread(fd, end - begin, begin)):
        parts.append(part)
        begin += len(part)
    return b"".join(parts)


def _range(wanted: str, size: int) -> tuple[int, int]:
    """From where to where (not included) a Range header wants a file; nonsense and several ranges count as no header."""
    first, dash, last = wanted.removeprefix("bytes=").strip().partition("-")
    numbers = all(not text or (text.isascii() and text.isdigit() and len(text) < 20) for text in (first, last))
    if not wanted.startswith("bytes=") or not dash or not numbers or not (first or last):
        return 0, size
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if begin >= end:
        raise BadRange(size)
    return begin, end
