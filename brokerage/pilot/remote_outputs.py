"""Outputs whose storage is reached by its server: sent as parts first, which get their names together at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from brokerage.pilot import remote_storage
from brokerage.pilot.clocks import now
from brokerage.pilot.copying import Sum, open_regular
from brokerage.pilot.job import Failure, Output
from brokerage.pilot.journal import Journal
from brokerage.pilot.storage_root import StorageDown

PAUSES_S = (0.5, 2.0, 4.0)
"""How long a server that is not there is left alone before each further try."""

Made = TypeVar("Made")


def send(output: Output, source: Path, journal: Journal, check: Callable[[], None], owner: int | None) -> tuple[str, Sum]:
    """Send a file, which the server keeps as a part: the tag of that part, and what it holds. Raises Failure, OSError."""
    check()
    fd = open_regular(source, owner)
    try:
        size = os.fstat(fd).st_size
        journal.will_send(output.storage, output.remove_url)
        part = _patiently(lambda: remote_storage.upload(output.storage, output.url, fd, size, "", check, hold=True), check)
        return part.etag, Sum(size, part.checksum)
    except FileExistsError as problem:
        raise stands_already(output) from problem
    finally:
        os.close(fd)


def publish(output: Output, etag: str, journal: Journal, check: Callable[[], None]) -> None:
    """Give a part its name, unless the name is taken by a file that is not ours. Raises Failure, OSError."""
    journal.will_name(output.storage, output.remove_url, etag)
    try:
        _patiently(lambda: remote_storage.publish(output.storage, output.url, etag), check)
    except FileExistsError as problem:
        raise stands_already(output) from problem
    except FileNotFoundError as problem:
        raise Failure("STAGEOUT_FAILED", f"{output.lfn}: its temporary file vanished from storage") from problem


def _patiently(work: Callable[[], Made], check: Callable[[], None]) -> Made:
    """Do it again when the server was not there for a moment; each step may be repeated. Hours of work hang on it."""
    for pause_s in PAUSES_S:
        try:
            return work()
        except StorageDown:
            until = now() + pause_s
            while now() < until:
                check()
                time.sleep(0.1)
    return work()


def stands_already(output: Output) -> Failure:
    """Another file has the name."""
    return Failure("OUTPUT_EXISTS", f"{output.lfn} stands on {output.storage} already")
