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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARKER = ".gridbroker-storage"
CANARY = "canary:"


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

    def _look(self, held: Path) -> None:
        """Raise StorageDown where the mark is not found."""
        try:
            if self.mark == MARKER:
                with (held / MARKER).open("rb") as file:
                    name = file.read(256).decode("utf-8", "replace").strip()
                if name != self.name:
                    raise StorageDown(self.name, f"its root is marked as {name[:60]!r}")
            elif self.mark.startswith(CANARY):
                size, _, canary = self.mark.removeprefix(CANARY).partition(":")
                if (held / canary).stat().st_size != int(size):
                    raise StorageDown(self.name, f"{canary} has not the size that its mark says")
        except StorageDown:
            raise
        except OSError as problem:
            raise StorageDown(self.name, f"the mark of its root cannot be read: {problem.strerror}") from problem


def make_folder(root: Path, folder: Path) -> None:
    """Make a folder below a root, and those between; never the root itself."""
    between = [parent for parent in (folder, *folder.parents) if parent.is_relative_to(root) and parent != root]
    for each in reversed(between):
        each.mkdir(exist_ok=True)
