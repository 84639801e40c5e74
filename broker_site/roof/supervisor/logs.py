"""Log files that never grow beyond a size while what writes them runs on: the supervisor cuts those of all processes.

Children append (O_APPEND) to a file that they keep open, so the file is emptied in place. Lines that come between copy and cut
are lost; that is a moment each time that a log has reached its size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from broker_site.roof.supervisor.console import Event

LIMIT_BYTES = 10_000_000
MADE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
OLDER = ".1"
"""What was cut stays beside the log under its name with this ending, until the next cut."""


def cut_logs(folder: Path, limit_bytes: int = LIMIT_BYTES) -> Iterator[Event]:
    """Cut every log of the folder that is too long."""
    for log in folder.glob("*.log"):
        try:
            if log.stat().st_size > limit_bytes:
                _cut(log, limit_bytes)
        except OSError as error:
            yield Event(log.name, "log", f"{log} cannot be cut: {error.strerror}")


def _cut(log: Path, limit_bytes: int) -> None:
    """Keep the last `limit_bytes` as the older part, and empty the log."""
    fresh = log.with_name(f"{log.name}{OLDER}.new")
    try:
        with log.open("rb") as source, os.fdopen(os.open(fresh, MADE, 0o640), "wb") as target:
            source.seek(-limit_bytes, os.SEEK_END)
            target.write(source.read(limit_bytes))  # no more: its writer may be quicker than we are
        fresh.replace(log.with_name(log.name + OLDER))
    finally:
        fresh.unlink(missing_ok=True)
        os.truncate(log, 0)  # also where there is no room for the older part
