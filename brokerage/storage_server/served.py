"""What a server serves: its root with the mark, the keys that addresses are signed with, and which names a file may have."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from brokerage.pilot.copying import Identity
from brokerage.pilot.storage_root import MARKER, StorageRoot

CONFIGURATION = "GRIDBROKER_STORAGE_SERVER"
"""The variable by which the processes of a server get what it serves."""
LONGEST_PART, LONGEST_NAME = 255, 4000
SHORTEST_KEY = 32


class BadName(ValueError):
    """No file of a storage can have this name."""


class NoKeys(Exception):
    """The file of keys cannot be used; the text says why."""


@dataclass(slots=True)
class Served:
    """One storage. Keys are read anew when their file changes, so that they are replaced without a pause."""

    root: StorageRoot
    key_file: Path
    _keys: tuple[str, ...] = ()
    _read: tuple[int, int] = field(default=(0, 0))

    @classmethod
    def from_environment(cls) -> Served:
        """As `as_text` wrote it. KeyError, ValueError: there is none."""
        values = json.loads(os.environ[CONFIGURATION])
        return cls(StorageRoot(values["name"], Path(values["root"]), values["mark"]), Path(values["key_file"]))

    def as_text(self) -> str:
        root = self.root
        return json.dumps({"name": root.name, "root": str(root.path), "mark": root.mark, "key_file": str(self.key_file)})

    def keys(self) -> tuple[str, ...]:
        """The keys, one in each line of their file. Raises NoKeys."""
        try:
            status = self.key_file.stat()
            if (status.st_mtime_ns, status.st_ino) != self._read:
                lines = self.key_file.read_text(encoding="ascii").split()
                if not lines or any(len(line) < SHORTEST_KEY for line in lines):
                    raise NoKeys(f"{self.key_file} must have a key of at least {SHORTEST_KEY} characters in each line")
                self._keys, self._read = tuple(lines), (status.st_mtime_ns, status.st_ino)
        except (OSError, UnicodeError) as problem:
            raise NoKeys(f"{self.key_file} cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
        return self._keys


def parts_of(name: str) -> list[str]:
    """The folders of a name and the file. BadName for what could lead elsewhere, and for the mark of the root."""
    parts = name.split("/")
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        raise BadName("the name is too long")
    for part in parts:
        if part in ("", ".", "..") or "\0" in part or len(part.encode("utf-8", "surrogatepass")) > LONGEST_PART:
            raise BadName("the name leads elsewhere")
    if parts == [MARKER]:
        raise BadName("the mark of the root is no file of the storage")
    return parts


def part_name(lfn: str, job: int, epoch: int) -> str:
    """The name of a file that is being written by an attempt at a job, as pilots name theirs."""
    return f".{lfn}.{job}.{epoch}.part"


def etag(file: Identity) -> str:
    """The identity of a file as HTTP has it: another file under the same name has another."""
    return f'"{file.inode}-{file.size}-{file.mtime_ns}"'
