"""Outputs whose storage is reached by its server: sent as parts first, which get their names together at the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from brokerage.pilot import remote_storage
from brokerage.pilot.copying import Sum, open_regular
from brokerage.pilot.job import Failure, Output
from brokerage.pilot.journal import Journal


def send(output: Output, source: Path, journal: Journal, check: Callable[[], None], owner: int | None) -> tuple[str, Sum]:
    """Send a file, which the server keeps as a part: the tag of that part, and what it holds. Raises Failure, OSError."""
    check()
    fd = open_regular(source, owner)
    try:
        size = os.fstat(fd).st_size
        journal.will_send(output.storage, output.remove_url)
        part = remote_storage.upload(output.storage, output.url, fd, size, "", check, hold=True)
        return part.etag, Sum(size, part.checksum)
    except FileExistsError as problem:
        raise stands_already(output) from problem
    finally:
        os.close(fd)


def publish(output: Output, etag: str, journal: Journal) -> None:
    """Give a part its name, unless the name is taken by a file that is not ours. Raises Failure, OSError."""
    journal.will_name(output.storage, output.remove_url, etag)
    try:
        remote_storage.publish(output.storage, output.url, etag)
    except FileExistsError as problem:
        raise stands_already(output) from problem
    except FileNotFoundError as problem:
        raise Failure("STAGEOUT_FAILED", f"{output.lfn}: its temporary file vanished from storage") from problem


def stands_already(output: Output) -> Failure:
    """Another file has the name."""
    return Failure("OUTPUT_EXISTS", f"{output.lfn} stands on {output.storage} already")
