"""Copying one file while size and adler32 are taken; knows neither jobs nor storage."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

CHUNK = 1 << 20


@dataclass(frozen=True)
class Sum:
    """Size in bytes and adler32 as 8 hex digits."""

    size: int
    checksum: str


@dataclass(frozen=True)
class Identity:
    """What tells one file from another that may later stand under the same path."""

    inode: int
    size: int
    mtime_ns: int


def identity(path: Path) -> Identity | None:
    """The identity of the file at `path`; None when there is none."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Identity(status.st_ino, status.st_size, status.st_mtime_ns)


def open_regular(path: Path, owner: int | None = None) -> int:
    """A descriptor to read a regular file; OSError for anything else (a pipe would block for ever).

    With `owner` only a file of this user: a payload may have linked to one that it could not read itself.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or (owner is not None and status.st_uid != owner):
        os.close(fd)
        raise OSError(f"not a regular file of the payload: {path}" if owner else f"not a regular file: {path}")
    return fd


def copy(source: int, target: Path, check: Callable[[], None]) -> Sum:
    """Copy from an open file to the new file `target`; `check` is called before each chunk and may raise to stop."""
    with target.open("xb", buffering=0) as out:
        return _pass_on(source, out, check)


def store(source: int, target: Path, check: Callable[[], None]) -> Sum:
    """Copy to a storage: the new file is on its disk, and was read back as it was written. OSError when it was not."""
    with target.open("x+b", buffering=0) as out:
        written = _pass_on(source, out, check)
        os.fsync(out.fileno())
        with contextlib.suppress(OSError):  # where the file system has no such advice, the pages may come from memory
            os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        out.seek(0)
        stands = _pass_on(out.fileno(), None, check)
    if stands != written:
        raise OSError(
            errno.EIO,
            f"written were {written.size} bytes of adler32 {written.checksum}, "
            f"read back are {stands.size} bytes of adler32 {stands.checksum}",
        )
    return written


def _pass_on(source: int, out: FileIO | None, check: Callable[[], None]) -> Sum:
    size, adler = 0, 1
    while True:
        check()
        chunk = os.read(source, CHUNK)
        if not chunk:
            return Sum(size, f"{adler:08x}")
        size += len(chunk)
        adler = zlib.adler32(chunk, adler)
        rest = memoryview(chunk)
        while out is not None and rest:
            rest = rest[out.write(rest) :]
