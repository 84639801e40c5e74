"""What a slot is about, written down in its work folder, so that a pilot that finds it there after a kill can go on from it.

First the ask for a job, while it has no answer; then the ticket of the job. The files hold tokens and are for the pilot's user
alone. No payload runs while an ask lies there.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from brokerage.pilot.job import BadJob, Ticket, read_ticket

TICKET, ASK = "ticket.json", "ask.json"


@dataclass(frozen=True)
class Ask:
    """An ask for a job: the pilot token under which it is said, and its body, which names it."""

    token: str
    body: dict[str, Any]


def keep(work: Path, ticket: Ticket) -> None:
    """Write it down; a full disk must not stop the work, the lease's end tells the server as well."""
    _write(work, TICKET, asdict(ticket))


def drop(work: Path) -> None:
    """The server knows how the job ended, or has given it to others."""
    _remove(work, TICKET)


def left(work: Path) -> Ticket | None:
    """What an earlier pilot at this slot left; None when it ended well."""
    try:
        return read_ticket(_read(work, TICKET))
    except BadJob:
        return None


def keep_ask(work: Path, ask: Ask) -> None:
    _write(work, ASK, asdict(ask))


def drop_ask(work: Path) -> None:
    """The ask has its answer."""
    _remove(work, ASK)


def ask_left(work: Path) -> Ask | None:
    """An ask of which an earlier pilot at this slot never heard the answer."""
    document = _read(work, ASK)
    token, body = document.get("token"), document.get("body")
    return Ask(token, body) if isinstance(token, str) and token.isascii() and isinstance(body, dict) else None


def _write(work: Path, name: str, document: dict[str, Any]) -> None:
    fresh = work / f"{name}.new"
    with contextlib.suppress(OSError):
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(document, file)
        fresh.replace(work / name)


def _remove(work: Path, name: str) -> None:
    for each in (name, f"{name}.new"):
        with contextlib.suppress(OSError):
            (work / each).unlink()


def _read(work: Path, name: str) -> dict[str, Any]:
    """The document of a file; empty where there is none that can be read."""
    with contextlib.suppress(OSError, ValueError):
        document = json.loads((work / name).read_text(encoding="utf-8"))
        return document if isinstance(document, dict) else {}
    return {}
