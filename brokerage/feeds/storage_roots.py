"""Looking at the roots of storage endpoints, marking them, and making those that are a local system's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import CANARY, MARKER, StorageRoot
from brokerage.rules.grid.storage_root import RootLook

GB = 1e9
LOOK_S, MOST_AT_ONCE = 15.0, 32
"""How long all servers together are waited for, and how many are asked at the same time."""


class CannotMark(Exception):
    """A root cannot be marked; the text says why."""


def look_at_all(roots: Mapping[str, StorageRoot | RemoteRoot], seconds: float = LOOK_S) -> Mapping[str, RootLook]:
    """How these roots are at this moment. Those of servers are asked at the same time; who does not answer in time is down."""
    remote = {name: root for name, root in roots.items() if isinstance(root, RemoteRoot)}
    pool = ThreadPoolExecutor(min(MOST_AT_ONCE, len(remote) or 1), "look")
    try:
        asked = {name: pool.submit(look_at, root) for name, root in remote.items()}
        looks = {name: look_at(root) for name, root in roots.items() if name not in remote}
        wait(asked.values(), seconds)
        late = {name: RootLook(f"storage {name} is down: its server has not answered for {seconds:g} s") for name in asked}
        return {**looks, **late, **{name: future.result() for name, future in asked.items() if future.done()}}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def look_at(root: StorageRoot | RemoteRoot) -> RootLook:
    """How a root is at this moment."""
    if isinstance(root, RemoteRoot):
        return _look_at_server(root)
    if fault := root.fault():
        return RootLook(fault)
    try:
        disk = os.statvfs(root.path)
    except OSError as problem:
        return RootLook(f"storage {root.name} is down: its root: {problem.strerror}")
    writable = not disk.f_flag & os.ST_RDONLY and os.access(root.path, os.W_OK)
    return RootLook("", writable, disk.f_bavail * disk.f_frsize / GB, disk.f_blocks * disk.f_frsize / GB)


def _look_at_server(root: RemoteRoot) -> RootLook:
    try:
        told = root.look()
        return RootLook(str(told["fault"]), bool(told["writable"]), int(told["free"]) / GB, int(told["size"]) / GB)
    except PermissionError as problem:
        return RootLook(f"storage {root.name} is down: its server has another key: {problem.strerror}")
    except OSError as problem:
        return RootLook(str(problem.strerror or problem))
    except (KeyError, TypeError, ValueError):
        return RootLook(f"storage {root.name} is down: its server answers nonsense")


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
