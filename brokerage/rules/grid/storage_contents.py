"""What stands on a storage endpoint, held against what the catalogue says: pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workqueues.rules.jobs.log_streams import log_of

_TEMPORARY = re.compile(r"(?P<folder>.*/|)\.(?P<lfn>.+)\.\d+\.\d+\.part")
"""An output that a pilot is writing: its name, job and epoch."""


class StoredFile(NamedTuple):
    """A file below a root: its path there, size in bytes, and seconds since it was written, negative where it marks the root."""

    path: str
    size: int
    age_s: float


@dataclass(frozen=True, slots=True)
class StorageFindings:
    """`dark`: files that nobody knows; `young`: those of them that may be of a job that is about to report; `absent`: registered
    copies that are not there; `wrong_sizes`: path, bytes found, bytes registered. `right`: how many are as registered.
    """

    dark: Sequence[StoredFile] = ()
    young: Sequence[StoredFile] = ()
    absent: Sequence[str] = ()
    wrong_sizes: Sequence[tuple[str, int, int]] = ()
    right: int = 0
    bytes_of_dark: int = field(default=0)

    @property
    def problems(self) -> int:
        return len(self.dark) + len(self.absent) + len(self.wrong_sizes)


def compare(
    stored: Iterable[StoredFile],
    registered: Mapping[str, int],
    being_written: Collection[str],
    older_than_s: float,
    logs: Collection[str] = (),
) -> StorageFindings:
    """What is wrong. `registered`: path to size in bytes; `being_written`: paths of the outputs of jobs that have not ended.

    `logs`: paths of registered logs; their streams, which no catalogue has, belong to them.
    """
    left, right = dict(registered), 0
    dark: list[StoredFile] = []
    young: list[StoredFile] = []
    wrong: list[tuple[str, int, int]] = []
    for file in stored:
        if (size := left.pop(file.path, None)) is not None:
            right += size == file.size
            if size != file.size:
                wrong.append((file.path, file.size, size))
        elif file.age_s >= 0 and log_of(file.path) not in logs and final_path(file.path) not in being_written:
            (dark if file.age_s >= older_than_s else young).append(file)
    return StorageFindings(dark, young, sorted(left), wrong, right, sum(file.size for file in dark))


def final_path(path: str) -> str:
    """The path that a temporary file is to get; of any other file its own."""
    temporary = _TEMPORARY.fullmatch(path)
    return f"{temporary['folder']}{temporary['lfn']}" if temporary else path
