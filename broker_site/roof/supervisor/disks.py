"""Disks on which PostgreSQL's data and the logs lie: one that is full is told of, for what runs there only fails."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from broker_site.roof.supervisor.console import Event

LEAST_FREE_MB = 50
"""PostgreSQL adds to its journal in files of 16 MB, and stops when there is no room for one."""


def full_disks(folders: Mapping[str, Path]) -> Iterator[Event]:
    """Tell of each disk that is full, or no more. `folders`: what lies there, by name; those on one disk are told of together."""
    disks: dict[int, list[str]] = {}
    for name, folder in folders.items():
        try:
            disks.setdefault(folder.stat().st_dev, []).append(name)
        except OSError as error:
            yield Event(f"disk of {name}", "gone", f"the folder {folder} with {name} cannot be read: {error.strerror}")
    for names in disks.values():
        folder, what = folders[names[0]], " and ".join(names)
        disk = os.statvfs(folder)
        free_mb = disk.f_bavail * disk.f_frsize // 10**6
        if free_mb < LEAST_FREE_MB:
            yield Event(f"disk of {what}", "full", f"the disk with {what} is full, {free_mb} MB are left: make room at {folder}")
        else:
            yield Event(f"disk of {what}", "", f"the disk with {what} has room again: {free_mb} MB")
