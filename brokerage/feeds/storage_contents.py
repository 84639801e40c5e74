"""Going through the files below the root of a storage endpoint, holding them against the catalogue, and removing orphans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import StorageRoot
from brokerage.queries.storage_contents import files_being_written, registered_files, registered_logs
from brokerage.rules.grid.storage_contents import StorageFindings, StoredFile, compare


def check_contents(root: StorageRoot | RemoteRoot, older_than_s: float) -> StorageFindings:
    """What is wrong at an endpoint. Raises StorageDown, also when it goes down meanwhile: nothing is concluded then.

    The files are read first, then the catalogue, so that what a job registers meanwhile is not taken for unknown.
    """
    if isinstance(root, RemoteRoot):
        findings = _compare(root.name, [StoredFile(*file) for file in root.files()], older_than_s)
        return replace(findings, absent=[path for path in findings.absent if root.measure(path, -1) is None])
    with root.opened() as opened:
        findings = _compare(root.name, [StoredFile(*file) for file in root.files(opened)], older_than_s)
        absent = [path for path in findings.absent if not (opened / path).is_file()]
    return replace(findings, absent=absent)


def _compare(storage: str, stored: list[StoredFile], older_than_s: float) -> StorageFindings:
    being_written = files_being_written(storage)
    return compare(stored, registered_files(storage), being_written, older_than_s, registered_logs(storage))


def remove(root: StorageRoot | RemoteRoot, files: Iterable[StoredFile]) -> int:
    """Remove these files: how many were still there, as they were seen."""
    if isinstance(root, RemoteRoot):
        return sum(root.remove(file.path, file.size) for file in files)
    removed = 0
    with root.opened() as opened:
        for file in files:
            path = opened / file.path
            try:
                if path.lstat().st_size == file.size:
                    path.unlink()
                    removed += 1
            except FileNotFoundError:
                continue
    return removed
