"""Files that come in: written under another name, on the disk and read back before they get their own, and never over another.

All of it blocks: the application calls it from threads. Nothing here speaks HTTP.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from brokerage.pilot.copying import Identity, identity
from brokerage.pilot.signed_urls import Grant
from brokerage.pilot.stage_out import give_name
from brokerage.pilot.storage_root import adler32, folder_below, keep_names
from brokerage.storage_server.served import Served, etag, part_name, parts_of

AT_IT = "another request brings the same file"


class Damaged(Exception):
    """What came in, or what stands on the disk, is not what was sent; the text says how."""


class Stored(NamedTuple):
    """A file as it stands: which it is, its adler32, and whether it stood there before."""

    identity: Identity
    checksum: str
    known: bool = False


@dataclass(slots=True)
class Upload:
    """One file on its way in. `close` in the end, whatever happened.

    Whoever was given up waits for the lock: a descriptor is not closed while a thread still writes to it.
    """

    served: Served
    grant: Grant
    size: int
    name: str = ""
    temporary: str = ""
    written: int = 0
    adler: int = 1
    _folder: Path = Path()
    _fd: int = -1
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, checksum: str) -> Stored | None:
        """Make the temporary file; or what stands under the name already, if that is of this size and adler32.

        FileExistsError: something else stands there. OSError ENOSPC: it would not fit. StorageDown: the root is not there.
        """
        *folders, self.name = parts_of(self.grant.name)
        root = self._held.enter_context(self.served.root.opened())
        fd = folder_below(root, folders, make=True)
        self._held.callback(os.close, fd)
        self._folder = Path(f"/proc/self/fd/{fd}")
        if (there := identity(self._folder / self.name)) is not None:
            if there.size != self.size or not checksum or self._sum_of_file() != checksum:
                raise FileExistsError(errno.EEXIST, "another file has this name")
            return Stored(there, checksum, known=True)
        disk = os.statvfs(self._folder)
        if self.size > disk.f_bavail * disk.f_frsize:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        part = part_name(self.name, self.grant.job, self.grant.epoch)
        with contextlib.suppress(FileNotFoundError):
            if self.grant.job:  # an earlier request of this attempt was cut off, or still waits
                (self._folder / part).unlink()
            else:
                _remove_left(self._folder / part)
        try:
            self._fd = os.open(self._folder / part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o640)
        except FileExistsError as other:
            raise OSError(errno.EBUSY, AT_IT) from other
        self.temporary = part
        with contextlib.suppress(OSError):  # where the file system has no locks, two at once find each other out in `finish`
            fcntl.flock(self._fd, fcntl.LOCK_SH)
        return None

    def write(self, chunk: bytes) -> None:
        """More of the file. Damaged: more than was announced."""
        if self.written + len(chunk) > self.size:
            raise Damaged(f"more than the {self.size} bytes that were announced")
        rest = memoryview(chunk)
        with self._lock:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        self.adler = zlib.adler32(chunk, self.adler)
        self.written += len(chunk)

    def finish(self, checksum: str) -> Stored:
        """Put it on the disk and read it back; `checksum`: what the sender says, or empty. Damaged if it differs."""
        if self.written != self.size:
            raise Damaged(f"{self.written} bytes came, {self.size} were announced")
        came = f"{self.adler:08x}"
        if checksum and checksum != came:
            raise Damaged(f"adler32 of what came is {came}, announced was {checksum}")
        with self._lock:
            os.fsync(self._fd)
            with contextlib.suppress(OSError):
                os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)
            stands = adler32(self._fd)
        if stands != came:
            raise Damaged(f"adler32 of what stands on the disk is {stands}, of what came {came}")
        now = identity(self._folder / self.temporary)
        status = os.fstat(self._fd)
        if now is None or now.inode != status.st_ino or now.size != self.size:
            raise Damaged("another request writes the same file")
        return Stored(now, came)

    def publish(self, stored: Stored) -> Stored:
        """Give it its name; what stands there meanwhile, if it is the same. Raises FileExistsError."""
        try:
            give_name(self._folder / self.temporary, self._folder / self.name)
        except FileExistsError:
            there = identity(self._folder / self.name)
            if there is None or there.size != self.size or self._sum_of_file() != stored.checksum:
                raise
            return Stored(there, stored.checksum, known=True)
        keep_names(self._folder)
        self.temporary = ""
        return stored

    def keep_part(self) -> None:
        """Let the part stand, for a request that gives it its name."""
        self.temporary = ""

    def close(self) -> None:
        """Remove what has not got its name, unless it is another request's by now. Raises StorageDown if the root went away."""
        with self._lock:
            if self._fd >= 0:
                mine = os.fstat(self._fd).st_ino
                os.close(self._fd)
                self._fd = -1
                now = identity(self._folder / self.temporary) if self.temporary else None
                if now is not None and now.inode == mine:
                    with contextlib.suppress(FileNotFoundError):
                        (self._folder / self.temporary).unlink()
            self._held.close()

    def _sum_of_file(self) -> str:
        fd = os.open(self._folder / self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return adler32(fd)
        finally:
            os.close(fd)


@contextlib.contextmanager
def _without_locks() -> Iterator[None]:
    """A file system that has no locks is as one on which nobody holds any."""
    try:
        yield
    except BlockingIOError:
        raise
    except OSError as problem:
        if problem.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise


def _remove_left(part: Path) -> None:
    """Remove what a mover's upload left that was cut off; OSError EBUSY while one is at it. FileNotFoundError.

    Those of a job have a name for each attempt, those of movers one. Who writes has its part locked until it is through, or dead,
    and nobody removes one without the lock: so a part that was found good cannot be another's when it gets its name.
    """
    fd = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        with _without_locks():
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if (there := identity(part)) is not None and there.inode == os.fstat(fd).st_ino:
            part.unlink()
    except BlockingIOError as locked:
        raise OSError(errno.EBUSY, AT_IT) from locked
    finally:
        os.close(fd)


def publish_part(served: Served, grant: Grant, wanted: str) -> Stored:
    """Give the part of this attempt its name, if it is the one with this etag; done already is done.

    FileNotFoundError: there is no such part; FileExistsError: the name is another file's. StorageDown.
    """
    *folders, name = parts_of(grant.name)
    with served.root.opened() as root, contextlib.ExitStack() as held:
        fd = folder_below(root, folders)
        held.callback(os.close, fd)
        folder = Path(f"/proc/self/fd/{fd}")
        part, target = folder / part_name(name, grant.job, grant.epoch), folder / name
        whole, there = identity(part), identity(target)
        if there is not None:
            if etag(there) != wanted:
                raise FileExistsError(errno.EEXIST, "another file has this name")
            if whole == there:  # the server ended between the two steps of giving a name
                part.unlink(missing_ok=True)
            return Stored(there, "", known=True)
        if whole is None or etag(whole) != wanted:
            raise FileNotFoundError(errno.ENOENT, "its temporary file vanished from storage")
        give_name(part, target)
        keep_names(folder)
        return Stored(whole, "")


def remove_file(served: Served, grant: Grant, wanted: str, size: int | None) -> int:
    """Remove what an attempt at a job has written: its part, and the file if it has this etag; how many were there.

    For the broker's own (job 0): the file, if it has this etag or size as far as they are told.
    FileNotFoundError, FileExistsError (a directory), StorageDown.
    """
    *folders, name = parts_of(grant.name)
    with served.root.opened() as root, contextlib.ExitStack() as held:
        fd = folder_below(root, folders)
        held.callback(os.close, fd)
        folder, removed = Path(f"/proc/self/fd/{fd}"), 0
        there = identity(folder / name)
        if grant.job:
            with contextlib.suppress(FileNotFoundError):
                (folder / part_name(name, grant.job, grant.epoch)).unlink()
                removed += 1
        elif there is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if there is not None and _is_meant(there, grant, wanted, size):
            _remove(folder / name)
            removed += 1
        return removed


def _remove(file: Path) -> None:
    """FileExistsError where it is a directory: not to be told as if nothing stood there."""
    try:
        file.unlink(missing_ok=True)
    except IsADirectoryError:
        raise FileExistsError(errno.EEXIST, "it is no file") from None


def _is_meant(there: Identity, grant: Grant, wanted: str, size: int | None) -> bool:
    """A job removes only the very file that it has written."""
    if wanted or grant.job:
        return etag(there) == wanted
    return size is None or there.size == size
