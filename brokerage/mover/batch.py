"""A few copies between two endpoints, made together: the roots are looked at once, and each folder is kept on disk once."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from brokerage.ledger.transfers.local_copies import ClaimedCopy, CopyEnd
from brokerage.mover.bandwidth import Bandwidth
from brokerage.mover.files import (
    CHUNK,
    Content,
    CopyFailed,
    already_there,
    blaming,
    copy_through,
    judge_source,
    open_folder,
    open_part,
    open_source,
    part_name,
    publish,
    remove_part,
    stands,
    sum_of,
    write_all,
)
from brokerage.mover.reach import chunks_from, reached, send_copy
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import StorageDown, keep_names

SMALL = CHUNK
"""Files up to this size are read at once, and several are copied together."""


@dataclass(slots=True)
class Task:
    """A copy that this process has to make. `from_disk`: it is read back from there; `given_up`: it is to be stopped; `copied`:
    bytes so far.
    """

    row: ClaimedCopy
    bandwidth: Bandwidth
    from_disk: bool = False
    given_up: bool = False
    copied: int = 0

    def check(self) -> None:
        """Raise CopyFailed if it is to be stopped."""
        if self.row.cancelled:
            raise CopyFailed("operator", "it was cancelled")
        if self.given_up:  # what this says is heard only if the copy has come back to this mover meanwhile
            raise CopyFailed("unknown", "it was cancelled, or another mover had taken it over")

    def passing(self, size: int) -> None:
        """So many bytes are about to pass."""
        self.check()
        self.bandwidth.take(size, self.check)
        self.copied += size


class _Copy:
    """One copy of a batch on its way through the steps. `end`: how it ended, None while it goes on."""

    def __init__(self, task: Task) -> None:
        row = task.row
        self.task, self.content = task, Content(row.bytes, row.checksum)
        self.source_path, self.path = PurePosixPath(row.source_path), PurePosixPath(row.destination_path)
        self.part_name = part_name(self.path.name)
        self.folder = self.source = self.part = -1
        self.end: CopyEnd | None = None

    @contextmanager
    def step(self) -> Iterator[None]:
        """What fails in the block ends this copy alone."""
        row = self.task.row
        try:
            with blaming(row.destination.name, "dst_down"):
                yield
        except CopyFailed as failed:
            self.end = CopyEnd(row.key, failed.reason, failed.message)

    def send(self, source: Path | RemoteRoot, destination: RemoteRoot) -> None:
        """Make it at a server."""
        row = self.task.row
        send_copy(source, self.source_path, row.source.name, destination, self.path, self.content, self.task)

    def read_and_write(self, source: Path | RemoteRoot, destination: Path, folders: _Folders) -> None:
        """Bring the content into a part; nothing more is to be done where the file stands there already."""
        row, task = self.task.row, self.task
        self.folder = folders.of(destination, self.path)
        task.check()
        if self.content.bytes > SMALL and already_there(self.folder, self.path.name, self.content):
            remove_part(self.folder, self.part_name)
            self.end = CopyEnd(row.key)
            return
        if isinstance(source, RemoteRoot):
            self.part = open_part(self.folder, self.part_name)
            for chunk in chunks_from(source, self.source_path, self.content, task):
                write_all(self.part, chunk)
            return
        self.source = open_source(source / self.source_path, row.source.name, self.content)
        if self.content.bytes > SMALL:
            self.part = open_part(self.folder, self.part_name)
            copy_through(self.source, self.part, self.content.bytes, task.passing, row.source.name, row.destination.name)
            return
        with blaming(row.source.name, "src_down"):
            data = os.read(self.source, SMALL + 1)
        judge_source(row.source.name, len(data), zlib.adler32(data), self.content)
        task.passing(len(data))
        self.part = open_part(self.folder, self.part_name)
        write_all(self.part, data)

    def keep(self) -> None:
        """Bring the part to disk."""
        self.task.check()
        os.fsync(self.part)

    def judge_part(self) -> None:
        """Read it back; if it is not what it should be, the source tells whose fault that is."""
        row = self.task.row
        if stands(self.part, self.content, self.task.check, from_disk=self.task.from_disk):
            return
        if self.source >= 0:
            with blaming(row.source.name, "src_down"):
                size, adler = sum_of(self.source, self.task.check)
            judge_source(row.source.name, size, adler, self.content)
        raise CopyFailed("checksum", f"{row.destination.name}: what was read back is not what was written")

    def publish(self) -> None:
        """Give it its name."""
        self.task.check()
        publish(self.part, self.part_name, self.folder, self.path.name, self.task.row.destination.name, self.content)

    def close(self) -> None:
        """Leave no part of one that failed."""
        if self.folder >= 0 and self.end is not None and self.end.reason:
            remove_part(self.folder, self.part_name, self.part)
        for fd in (self.source, self.part):
            if fd >= 0:
                os.close(fd)


class _Folders:
    """The folders that a batch writes to, each opened once."""

    def __init__(self) -> None:
        self._opened: dict[PurePosixPath, int] = {}

    def of(self, root: Path, path: PurePosixPath) -> int:
        if path.parent not in self._opened:
            self._opened[path.parent] = open_folder(root, path)
        return self._opened[path.parent]

    def keep(self) -> None:
        for fd in self._opened.values():
            keep_names(fd)

    def close(self) -> None:
        for fd in self._opened.values():
            os.close(fd)


def copy_batch(tasks: Sequence[Task], reserve: Callable[[int, int], bool]) -> list[CopyEnd]:
    """Make the copies, all between the same two endpoints: how each ended.

    `reserve`: whether so many of so many free bytes at the destination are left by the other copies of this process.
    """
    row = tasks[0].row
    copies = [_Copy(task) for task in tasks]
    try:
        with reached(row.source, "src_down") as read_from, reached(row.destination, "dst_down") as write_to:
            if isinstance(write_to, RemoteRoot):
                _send(copies, read_from, write_to)
            else:
                _make(copies, read_from, write_to, reserve)
    except StorageDown as away:
        reason = "dst_down" if away.storage == row.destination.name else "src_down"
        return [CopyEnd(task.row.key, reason, str(away.strerror)) for task in tasks]
    except CopyFailed as failed:
        return [CopyEnd(task.row.key, failed.reason, failed.message) for task in tasks]
    return [copy.end or CopyEnd(copy.task.row.key) for copy in copies]


def _send(copies: Sequence[_Copy], read_from: Path | RemoteRoot, write_to: RemoteRoot) -> None:
    """One after the other: a server keeps each on its disk by itself, and says whether it has room."""
    for copy in copies:
        with copy.step():
            copy.send(read_from, write_to)


def _make(copies: Sequence[_Copy], read_from: Path | RemoteRoot, write_to: Path, reserve: Callable[[int, int], bool]) -> None:
    """All copies step by step, so that the disk is asked once for what several wait for."""
    folders = _Folders()
    size = sum(copy.content.bytes for copy in copies)
    storage = copies[0].task.row.destination.name
    with blaming(storage, "dst_down"):
        disk = os.statvfs(write_to)
    try:
        if not reserve(size, disk.f_bavail * disk.f_frsize):
            raise CopyFailed("dst_full", f"{storage}: {disk.f_bavail * disk.f_frsize} bytes are free")
        for copy in copies:
            with copy.step():
                copy.read_and_write(read_from, write_to, folders)
        for work in (_Copy.keep, _Copy.judge_part, _Copy.publish):
            for copy in copies:
                if copy.end is None:
                    with copy.step():
                        work(copy)
        folders.keep()
    finally:
        for copy in copies:
            copy.close()
        folders.close()
