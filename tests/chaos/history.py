"""What the clients of a run were told, a JSON line each, outside the database."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path


def wall_time() -> str:
    """The time of day in UTC as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class History:
    """A file to which several processes append whole lines."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.touch()

    def add(self, operation: str, actor: str, **facts: object) -> None:
        """Append one operation."""
        line = json.dumps({"operation": operation, "actor": actor, **facts})
        fd = os.open(self.file, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, line.encode() + b"\n")
        finally:
            os.close(fd)
