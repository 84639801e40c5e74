"""The root of a storage endpoint, a directory: whether it is really there. Pilots and the server look at it in this one way.

A storage that is not mounted leaves an empty folder behind, which looks like a storage that has lost everything, and it can be
written to. So an operator marks a root: by a file with the endpoint's name in it, or, where it cannot be written, by a file that
is always there (a canary) with its size. Where the mark is not found the storage is down. A root that was never marked is taken
as it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MARKER = ".gridbroker-storage"
CANARY = "canary:"
CHUNK = 1 << 20
MARKS_ROOT = -1.0
"""Told as the age of a file that marks its root: it is nobody's orphan."""


class StorageDown(OSError):
    """The root of a storage endpoint is not there, or is not the one that was marked."""

    def __init__(self, storage: str, why: str) -> None:
        super().__init__(errno.ENODEV, f"storage {storage} is down: {why}")
        self.storage = storage


@dataclass(frozen=True)
class StorageRoot:
    """Name of the endpoint, its directory, and how it is marked: empty (never), MARKER, or `canary:<bytes>:<path below it>`."""

    name: str
    path: Path
    mark: str = ""

    @property
    def mark_path(self) -> str:
        """Where below the root the file is that marks it; empty where none does."""
        return self.mark.split(":", 2)[-1] if self.mark.startswith(CANARY) else self.mark

    def fault(self) -> str:
        """Why the storage is down; empty when it is there."""
        try:
            with self.opened():
                return ""
        except StorageDown as down:
            return str(down.strerror)

    @contextlib.contextmanager
    def opened(self) -> Iterator[Path]:
        """A path to the very directory that was looked at: it leads there even when the root is moved away or covered meanwhile.

        Raises StorageDown, also at the end of a block without error in which the root went away.
        """
        try:
            fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY)
        except OSError as problem:
            raise StorageDown(self.name, f"its root: {problem.strerror}") from problem
        try:
            held = Path(f"/proc/self/fd/{fd}")
            self._look(held)
            yield held
            status = os.fstat(fd)
            try:
                now = self.path.stat()
            except OSError as problem:
                raise StorageDown(self.name, f"its root: {problem.strerror}") from problem
            if (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino):
                raise StorageDown(self.name, "its root is another folder than a moment ago")
        finally:
            os.close(fd)

    def measure(self, path: str, size: int) -> tuple[int, str] | None:
        """Size of a file below the root, and its adler32 if that is the size expected; None: there is no regular file.

        OSError when it cannot be read.
        """
        file = self.path / path
        try:
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):
                return None
            return status.st_size, adler32(file) if status.st_size == size else ""
        except (FileNotFoundError, NotADirectoryError):
            return None

    def files(self, opened: Path) -> Iterator[tuple[str, int, float]]:
        """Path, size and age in seconds of every regular file below the opened root but its mark; links are not followed.

        A canary may be a file of the catalogue, so it is told, with MARKS_ROOT as its age.
        OSError: a folder cannot be read, which is no empty folder.
        """
        now, prefix = time.time(), f"{opened}/"
        for folder, _, names in os.walk(prefix, onerror=_refuse):
            for name in names:
                path = Path(folder, name)
                try:
                    status = path.lstat()
                except FileNotFoundError:
                    continue  # it got its name or was taken away just now
                if (below := str(path).removeprefix(prefix)) != MARKER:
                    yield below, status.st_size, MARKS_ROOT if below == self.mark_path else max(0.0, now - status.st_mtime)

    def _look(self, held: Path) -> None:
        """Raise StorageDown where the mark is not found."""
        try:
            if self.mark == MARKER:
                with (held / MARKER).open("rb") as file:
                    name = file.read(256).decode("utf-8", "replace").strip()
                if name != self.name:
                    raise StorageDown(self.name, f"its root is marked as {name[:60]!r}")
            elif self.mark.startswith(CANARY):
                size = self.mark.split(":", 2)[1]
                if (held / self.mark_path).stat().st_size != int(size):
                    raise StorageDown(self.name, f"{self.mark_path} has not the size that its mark says")
        except StorageDown:
            raise
        except OSError as problem:
            raise StorageDown(self.name, f"the mark of its root cannot be read: {problem.strerror}") from problem


def _refuse(problem: OSError) -> None:
    raise problem


def keep_names(folder: Path | int) -> None:
    """Let the new names in a folder outlive a power cut, where its file system can do that."""
    fd = folder if isinstance(folder, int) else os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(fd)
    finally:
        if fd != folder:
            os.close(fd)


def make_folder(root: Path, folder: Path) -> None:
    """Make a folder below a root, and those between, so that they outlive a power cut; never the root itself."""
    os.close(folder_below(root, folder.relative_to(root).parts, make=True, links=True))


def folder_below(root: Path, parts: Sequence[str], *, make: bool = False, links: bool = False) -> int:
    """A descriptor of a folder below an opened root. `make`: those that are not there; `links`: parts of the way may be links."""
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if links else os.O_NOFOLLOW)
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=at)
                    keep_names(at)
            below = os.open(part, flags, dir_fd=at)
            os.close(at)
            at = below
    except BaseException:
        os.close(at)
        raise
    return at


def file_below(root: Path, path: str) -> int:
    """A descriptor of the regular file at `path` below an opened root; no part of the path may be a link."""
    *folders, name = path.split("/")
    if path.startswith("/") or ".." in (*folders, name):
        raise OSError(errno.EINVAL, f"not below the root: {path}")
    at = folder_below(root, [part for part in folders if part not in ("", ".")])
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, f"not a regular file: {path}")
    return file


def adler32(file: Path | int) -> str:
    """adler32 of a whole file as 8 hex digits; of an open one from its beginning."""
    total, at = 1, 0
    fd = file if isinstance(file, int) else os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while block := os.pread(fd, CHUNK, at):
            total, at = zlib.adler32(block, total), at + len(block)
    finally:
        if fd != file:
            os.close(fd)
    return f"{total:08x}"
