"""Looking at the roots of storage endpoints, marking them, and making those that are a local system's own."""

from __future__ import annotations

import os
from pathlib import Path

from brokerage.pilot.storage_root import CANARY, MARKER, StorageRoot
from brokerage.rules.grid.storage_root import RootLook

GB = 1e9


class CannotMark(Exception):
    """A root cannot be marked; the text says why."""


def look_at(root: StorageRoot) -> RootLook:
    """How a root is at this moment."""
    if fault := root.fault():
        return RootLook(fault)
    try:
        disk = os.statvfs(root.path)
    except OSError as problem:
        return RootLook(f"storage {root.name} is down: its root: {problem.strerror}")
    writable = not disk.f_flag & os.ST_RDONLY and os.access(root.path, os.W_OK)
    return RootLook("", writable, disk.f_bavail * disk.f_frsize / GB, disk.f_blocks * disk.f_frsize / GB)


def put_mark(name: str, path: Path, canary: str = "") -> str:
    """Mark a root that is there: the mark. `canary`: a file below it that is always there, instead of writing one.

    A marker of another endpoint is never replaced. Raises CannotMark.
    """
    try:
        if not path.is_dir():
            raise CannotMark(f"{path} is not a folder")
        if canary:
            file = (path / canary).resolve()
            if not file.is_relative_to(path.resolve()) or not file.is_file():
                raise CannotMark(f"{canary} is not a file below {path}")
            return f"{CANARY}{file.stat().st_size}:{canary}"
        marker = path / MARKER
        if marker.exists():
            if fault := StorageRoot(name, path, MARKER).fault():
                raise CannotMark(fault)
        else:
            marker.write_text(f"{name}\n", encoding="utf-8")
    except OSError as problem:
        raise CannotMark(f"{problem.filename or path}: {problem.strerror}") from problem
    return MARKER
