"""Removing copies below the root of a storage endpoint: only what the catalogue names, and never the root's mark.

Here: what happens on storage. Not here: which copies go, and that they are gone (`brokerage.ledger.transfers.caches`).
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Sequence

from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import MARKER, StorageDown, StorageRoot
from brokerage.transfers.port import FileFault, NotRemovable

LONGEST_PATH = 1024
LATE = "no time was left for it"
_FORBIDDEN = (errno.EPERM, errno.EACCES)


def remove_copies(root: StorageRoot | RemoteRoot, paths: Sequence[str], patience_s: float) -> list[str]:
    """Remove the files at these paths below the root: for each what went wrong, empty where it is gone or was not there.

    After `patience_s` nothing more is removed: who waits for this may have given up, and files of these names may be new ones.
    Raises StorageDown, also when the root goes away meanwhile: nothing is known of any of them then. At a root that was never
    marked nothing is removed, since what is not found there may be somewhere else.
    """
    if not root.mark:
        return [f"the root of storage {root.name} was never marked"] * len(paths)
    end = time.monotonic() + patience_s
    if isinstance(root, RemoteRoot):
        return [_removed_at_server(root, path, end) for path in paths]
    with root.opened() as opened:
        return [_removed(root, str(opened), path, end) for path in paths]


def path_fault(path: str) -> str:
    """Why a path cannot be one of a copy below a root; empty where it can."""
    if not path or len(path) > LONGEST_PATH or "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        return f"{path[:80]!r} is no path below the root"
    return ""


def _removed_at_server(root: RemoteRoot, path: str, end: float) -> str:
    """The server keeps its mark itself, and follows no links."""
    if fault := path_fault(path):
        return FileFault(fault)
    if time.monotonic() > end:
        return LATE
    try:
        root.remove(path)
    except FileExistsError:
        return NotRemovable(f"{path} is no file")
    except StorageDown:
        raise
    except PermissionError as problem:  # it takes none of our addresses
        return f"{path} cannot be removed: {problem.strerror}"
    except OSError as problem:
        return FileFault(f"{path} cannot be removed: {problem.strerror}")
    return ""


def _removed(root: StorageRoot, opened: str, path: str, end: float) -> str:
    if fault := path_fault(path):
        return FileFault(fault)
    parts = path.split("/")
    if path in (MARKER, root.mark_path):
        return FileFault(f"{path} marks the root")
    try:
        folder = os.open(opened, os.O_PATH | os.O_DIRECTORY)
        try:
            for part in parts[:-1]:
                inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            if not stat.S_ISREG(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode):
                return NotRemovable(f"{path} is no file")
            if time.monotonic() > end:
                return LATE
            os.unlink(parts[-1], dir_fd=folder)
        finally:
            os.close(folder)
    except FileNotFoundError:
        return ""
    except OSError as problem:
        kind = NotRemovable if problem.errno in _FORBIDDEN else FileFault
        return kind(f"{path} cannot be removed: {problem.strerror}")
    return ""
