"""The streams of a job's log as plain files beside its archive, so that a page need not unpack it.

They are stored after all outputs, together or not at all, and that they are not is no failure of the job: the archive has them.
What they are called, and where they go, the server tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from brokerage.pilot.clocks import now
from brokerage.pilot.job import Failure, Output
from brokerage.pilot.joblog import head_and_tail
from brokerage.pilot.journal import Journal
from brokerage.pilot.stage_out import stage_out

MOST_S = 60.0
"""They are given up after so long: the outputs are stored, and the server waits for the report."""


def store_streams(
    logs: Iterable[Output],
    members: Mapping[str, Path],
    most: int,
    folder: Path,
    name: str,
    journal: Journal,
    check: Callable[[], None],
) -> str:
    """Store head and tail of what these logs are made of (`members`), by way of the new folder `folder`; why they are not stored.

    What was stored until something went wrong is removed again. Raises LeaseLost, from `check`.
    """
    streams = [stream for log in logs for stream in log.streams if stream.made_as in members]
    if not streams:
        return ""
    before = journal.entries
    try:
        folder.mkdir()
        for stream in {each.made_as for each in streams}:
            (folder / stream).write_bytes(head_and_tail(members[stream], most))
        stage_out(streams, folder, name, journal, partial(_go_on, check, now() + MOST_S))
    except (Failure, OSError) as problem:
        return f"{problem}{_taken_back(journal, before)}"
    return ""


def _go_on(check: Callable[[], None], until: float) -> None:
    check()
    if now() > until:
        raise Failure("STAGEOUT_FAILED", f"it took longer than {MOST_S:g} s")


def _taken_back(journal: Journal, before: int) -> str:
    try:
        journal.take_back(before)
    except OSError as problem:
        return f"; what was stored of them is left there: {problem}"
    return ""
