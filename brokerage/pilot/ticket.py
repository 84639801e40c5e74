"""The job that a slot works on, written down in its work folder: a pilot that finds it there after a kill can answer for the job.

The file holds the job's token and is for the pilot's user alone.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict
from pathlib import Path

from brokerage.pilot.job import BadJob, Ticket, read_ticket

NAME = "ticket.json"


def keep(work: Path, ticket: Ticket) -> None:
    """Write it down; a full disk must not stop the work, the lease's end tells the server as well."""
    fresh = work / f"{NAME}.new"
    with contextlib.suppress(OSError):
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(ticket), file)
        fresh.replace(work / NAME)


def drop(work: Path) -> None:
    """The server knows how the job ended, or has given it to others."""
    for name in (NAME, f"{NAME}.new"):
        with contextlib.suppress(OSError):
            (work / name).unlink()


def left(work: Path) -> Ticket | None:
    """What an earlier pilot at this slot left; None when it ended well."""
    try:
        document = json.loads((work / NAME).read_text(encoding="utf-8"))
        return read_ticket(document if isinstance(document, dict) else {})
    except (OSError, ValueError, BadJob):
        return None
