"""What the server acknowledged to a pilot, a JSON line each: a record outside the database, to hold the database against.

Kept only where the pilot is given a file for it, which several pilots may share.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from brokerage.pilot.clocks import wall_time


def note(file: Path | None, operation: str, actor: str, sent: str, answer: int, **more: object) -> None:
    """Add one operation to `file`: when it was sent (ISO 8601), acknowledged (now) and with which HTTP status, and what is known.

    One write, so that lines of several pilots do not mix, and a killed pilot leaves whole lines.
    """
    if file is None:
        return
    line = {"operation": operation, "actor": actor, "sent": sent, "acked": wall_time(), "answer": answer, **more}
    with contextlib.suppress(OSError):  # a full disk must not stop the work
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(fd, json.dumps(line).encode() + b"\n")
        finally:
            os.close(fd)
