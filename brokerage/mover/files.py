"""The steps of one file from an opened root to another: part, checksum, disk, name, read back. Knows neither rows nor threads.

The name is given to the very file that was checked (its descriptor), never to what stands under the name of the part: whoever
else works on the same copy, because a claim was lost, cannot put half a file under the real name.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from brokerage.pilot.copying import open_regular
from brokerage.pilot.storage_root import make_folder

CHUNK = 1 << 20
READ = 1 << 18
"""Bytes that are read at a time to be summed up: they stay in the cache of the processor."""
NAME_MAX = 255
TAKEN_OVER = "somebody else works on the same copy"
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)

Check = Callable[[], None]


class Passing(Protocol):
    """What a copy is asked about on its way; either may raise CopyFailed."""

    def check(self) -> None:
        """Whether to go on."""

    def passing(self, size: int) -> None:
        """So many bytes are about to pass."""


class CopyFailed(Exception):
    """A copy that is not made: one of the reasons of transfers, and words."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


@dataclass(frozen=True, slots=True)
class Content:
    """Size and adler32 that a file has to have."""

    bytes: int
    checksum: str


def part_name(name: str) -> str:
    """The name of a file while it is copied: as much of the real one as fits, and what tells it from others.

    It is the same for every attempt: what a mover left that was killed goes with the next attempt, whichever that is.
    """
    encoded = os.fsencode(name)
    ending = f".{hashlib.sha256(encoded).hexdigest()[:16]}.part"
    whole = encoded[: NAME_MAX - len(ending) - 1]
    return f".{os.fsdecode(whole)}{ending}"


@contextmanager
def blaming(storage: str, down: str) -> Iterator[None]:
    """What goes wrong in the block is the fault of an endpoint: `src_down` or `dst_down`, unless the error says more."""
    try:
        yield
    except OSError as problem:
        what = str(problem.strerror or problem)
        what = what if storage in what else f"{storage}: {what}"
        number = problem.errno
        if down == "src_down" and number in _ABSENT:
            raise CopyFailed("source_missing", what) from problem
        if down == "dst_down" and number in _FULL:
            raise CopyFailed("dst_full", what) from problem
        raise CopyFailed("auth" if number in _FORBIDDEN else down, what) from problem


def open_source(path: Path, storage: str, content: Content) -> int:
    """A descriptor of a source file of the right size."""
    with blaming(storage, "src_down"):
        try:
            fd = open_regular(path)
        except OSError as problem:
            if problem.errno is None:
                raise CopyFailed("source_corrupt", f"{storage}: it is not a regular file") from problem
            raise
        if (size := os.fstat(fd).st_size) != content.bytes:
            os.close(fd)
            raise CopyFailed("source_corrupt", f"{storage}: it has {size} bytes, not {content.bytes}")
    return fd


def judge_source(storage: str, size: int, adler: int, content: Content) -> None:
    """Raise CopyFailed where what was read from the source is not what the catalogue says."""
    if (size, f"{adler:08x}") != (content.bytes, content.checksum):
        what = f"it has {size} bytes of adler32 {adler:08x}, not {content.bytes} of {content.checksum}"
        raise CopyFailed("source_corrupt", f"{storage}: {what}")


def open_folder(root: Path, path: PurePosixPath) -> int:
    """A descriptor of the folder of a file below an opened root, which is made where it is not there."""
    folder = root / path.parent
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        make_folder(root, folder)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)


def open_part(folder: int, part: str) -> int:
    """A new file for the copy; what is left of an earlier try goes."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        return os.open(part, flags, 0o644, dir_fd=folder)
    except FileExistsError:
        os.unlink(part, dir_fd=folder)
        return os.open(part, flags, 0o644, dir_fd=folder)


def remove_part(folder: int, part_named: str, part: int = -1) -> None:
    """Remove what was written, if anything is there; with the open file `part` only if it is that one, not another mover's."""
    with contextlib.suppress(OSError):
        if part < 0 or _stands_under(part_named, folder, part):
            os.unlink(part_named, dir_fd=folder)


def _stands_under(name: str, folder: int, fd: int) -> bool:
    """Whether a name is that of an open file."""
    mine, named = os.fstat(fd), os.stat(name, dir_fd=folder, follow_symlinks=False)
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)


def write_all(fd: int, data: bytes) -> None:
    """Write a chunk to the end."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def copy_through(source: int, part: int, size: int, passing: Callable[[int], None], read_from: str, write_to: str) -> None:
    """Copy so many bytes chunk by chunk. `passing` is told the size of each chunk first, and may raise.

    The kernel moves them, which costs half the CPU of reading and writing; what was written is judged when it is read back.
    """
    at = 0
    while at < size:
        wanted = min(CHUNK, size - at)
        passing(wanted)
        moved = _moved(source, part, at, wanted, read_from, write_to)
        if not moved:
            raise CopyFailed("source_corrupt", f"{read_from}: it became shorter: {at} bytes, not {size}")
        at += moved


def _moved(source: int, part: int, at: int, wanted: int, read_from: str, write_to: str) -> int:
    """Bytes that were copied: up to so many. Where the kernel cannot do it, the error of this end or of that one tells why."""
    try:
        return os.sendfile(part, source, at, wanted)
    except OSError:
        with blaming(read_from, "src_down"):
            chunk = os.pread(source, wanted, at)
        with blaming(write_to, "dst_down"):
            write_all(part, chunk)
        return len(chunk)


def sum_of(fd: int, check: Check) -> tuple[int, int]:
    """Size and adler32 of an open file, read from its beginning. `check` is called before each chunk, and may raise."""
    at, adler, buffer = 0, 1, memoryview(bytearray(READ))
    while read := os.preadv(fd, [buffer], at):
        check()
        at += read
        adler = zlib.adler32(buffer[:read], adler)
    return at, adler


def stands(fd: int, content: Content, check: Check, *, from_disk: bool = False) -> bool:
    """Whether the file has this content. `from_disk`: as it is on disk, where the file system has such advice."""
    if from_disk:
        with contextlib.suppress(OSError):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if os.fstat(fd).st_size != content.bytes:
        return False
    size, adler = sum_of(fd, check)
    return (size, f"{adler:08x}") == (content.bytes, content.checksum)


def publish(part: int, part_named: str, folder: int, name: str, storage: str, content: Content) -> None:
    """Give the file of the descriptor its name. The same content under the name already is as good; another one is kept."""
    try:
        _name(part, part_named, folder, name)
    except FileExistsError as taken:
        if not already_there(folder, name, content):
            raise CopyFailed("refused", f"{storage}: another file stands under the name {name}") from taken
    remove_part(folder, part_named, part)


def _name(part: int, part_named: str, folder: int, name: str) -> None:
    """Link the open file. Where links do not exist, rename the part if it still is the open file and the name is free."""
    try:
        os.link(f"/proc/self/fd/{part}", name, dst_dir_fd=folder, follow_symlinks=True)
        return
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
    if not _stands_under(part_named, folder, part):
        raise CopyFailed("dst_down", TAKEN_OVER)
    with contextlib.suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    os.rename(part_named, name, src_dir_fd=folder, dst_dir_fd=folder)
    if not _stands_under(name, folder, part):  # between the look and the renaming another mover began it anew
        os.rename(name, part_named, src_dir_fd=folder, dst_dir_fd=folder)
        raise CopyFailed("dst_down", TAKEN_OVER)


def already_there(folder: int, name: str, content: Content) -> bool:
    """Whether the file stands under its name with its content."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ELOOP):
            return False
        raise
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode) and stands(fd, content, lambda: None)
    finally:
        os.close(fd)
