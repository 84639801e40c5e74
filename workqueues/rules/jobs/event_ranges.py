"""What tries make of input files and of the events that jobs share: which events no job has (decisions D1, F2). Pure.

A try is counted for the events that it was given, not for the file: ten jobs of one file that fail once each leave every event
with one try. Events whose tries or failures are used up (decision D1) are not free until a retry of the task allows more.
Not here: cutting free events into jobs (`workqueues.splitters`), the rows (`workqueues.ledger.events`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple


class Try(NamedTuple):
    """One range of a file: its first event and the one behind its last, counted from 0; how many tries and failures its events
    have, this one included; the job; and whether it keeps its events (live or processed).
    """

    first: int
    stop: int
    attempt_nr: int
    failed_attempt: int
    job_id: int
    keeps: bool


class InputFile(NamedTuple):
    """A file that jobs may get. Size in bytes; None where unknown. `job_id`: the job that had it before."""

    id: int
    dataset_id: int
    lfn: str
    fsize: int | None = None
    n_events: int | None = None
    first_event: int | None = None
    boundary_id: int | None = None
    lumi_block_nr: int | None = None
    attempt_nr: int = 0
    ram_count: int = 0
    job_id: int | None = None


class Free(NamedTuple):
    """Events of one file that no job has, all with the same past: tries, failures, and the last job that had them."""

    first: int
    stop: int
    attempt_nr: int = 0
    failed_attempt: int = 0
    previous_job_id: int | None = None


class Piece(NamedTuple):
    """Neighbouring events of a file that no job has: `first` counted from 0 in the file, and how many.

    Runs that touch are one piece; `parts` are its runs of one past each (tries, failures, last job). A file whose number of
    events is unknown or 0 is one piece of 0 events without parts: it is used whole, without a range.
    """

    file_id: int
    first: int
    n_events: int
    parts: tuple[Free, ...] = ()

    def between(self, skip: int, upto: int) -> list[Free]:
        """The events from `skip` up to but not including `upto`, counted from the start of the piece, by their past: each run is
        one range of a job that takes them.
        """
        start, end = self.first + skip, self.first + upto
        return [
            part._replace(first=max(part.first, start), stop=min(part.stop, end))
            for part in self.parts
            if part.first < end and start < part.stop
        ]


class NewRange(NamedTuple):
    """Events of a file for one job: a free piece or a part of it. `attempt_nr`, `failed_attempt`: those of the piece."""

    dataset_id: int
    file_id: int
    job_id: int
    first: int
    n_events: int
    attempt_nr: int = 0
    failed_attempt: int = 0


class DroppedEvents(NamedTuple):
    """Events of a picked file that no job will take; 0 events: a file that is used whole."""

    file_id: int
    first: int
    n_events: int


def used_up(attempt_nr: int, max_attempt: int | None, failed_attempt: int, max_failure: int | None) -> bool:
    """Whether events with so many tries and failures are given up; a limit of None is no limit (decision D1)."""
    out_of_tries = max_attempt is not None and attempt_nr >= max_attempt
    return out_of_tries or (max_failure is not None and failed_attempt >= max_failure)


def free_events(n_events: int, tries: Sequence[Try], max_attempt: int | None, max_failure: int | None) -> list[Free]:
    """The events from 0 up to `n_events` that no range keeps and that have tries left, in order.

    `tries`: all ranges of the file, the oldest first; the newest one that holds an event tells its past.
    """
    opening: dict[int, list[int]] = {}
    closing: dict[int, list[int]] = {}
    for number, each in enumerate(tries):
        opening.setdefault(each.first, []).append(number)
        closing.setdefault(each.stop, []).append(number)
    marks = sorted({0, n_events, *(m for m in (*opening, *closing) if 0 <= m <= n_events)})
    covering: set[int] = set()
    runs: list[Free] = []
    for first, stop in pairwise(marks):
        covering.difference_update(closing.get(first, ()))
        covering.update(opening.get(first, ()))
        past = [tries[number] for number in sorted(covering)]
        if any(each.keeps for each in past):
            continue
        latest = past[-1] if past else None
        run = Free(first, stop, latest.attempt_nr, latest.failed_attempt, latest.job_id) if latest else Free(first, stop)
        if not used_up(run.attempt_nr, max_attempt, run.failed_attempt, max_failure):
            if runs and runs[-1].stop == run.first and runs[-1][2:] == run[2:]:
                run = run._replace(first=runs.pop().first)
            runs.append(run)
    return runs


def joined_pieces(file_id: int, runs: Sequence[Free]) -> Iterator[Piece]:
    """The pieces of a file that its free runs are: those that touch are one."""
    breaks = [i for i, run in enumerate(runs) if i == 0 or runs[i - 1].stop < run.first]
    for start, stop in pairwise([*breaks, len(runs)]):
        parts = tuple(runs[start:stop])
        yield Piece(file_id, parts[0].first, parts[-1].stop - parts[0].first, parts)


FileStatus = Literal["ready", "running", "partial", "finished", "failed"]


def file_status(live: int, done: int, free: int, n_events: int, held: bool = False) -> FileStatus:
    """The state of a file whose events jobs share, while no generator has picked it.

    `live`: ranges that jobs have; `done` and `free`: events. A file with free events is ready, partial where some are done and
    none is under way (decision F2); one that is held back is ready with its reason (decision E1).
    """
    if free:
        return "partial" if done and not live and not held else "ready"
    if live:
        return "running"
    return "finished" if done >= n_events else "failed"


Outcome = Literal["finished", "failed", "returned", "untried"]
"""How a job treats its inputs: used; a failure; a try that was not a failure (closed, cancelled); no try at all."""


class FileState(NamedTuple):
    """An input file after a try."""

    attempt_nr: int
    failed_attempt: int
    status: Literal["finished", "ready", "failed"]


def after_try(
    attempt_nr: int, max_attempt: int | None, failed_attempt: int, max_failure: int | None, outcome: Outcome
) -> FileState:
    """The counts and status of a file after one more try; a limit of None is no limit.

    attempt_nr counts every try, closed and cancelled ones too; failed_attempt failures only. Given up at either limit.
    """
    if outcome == "untried":
        return FileState(attempt_nr, failed_attempt, "ready")
    tries = attempt_nr + 1
    failures = failed_attempt + (outcome == "failed")
    if outcome == "finished":
        return FileState(tries, failures, "finished")
    return FileState(tries, failures, "failed" if used_up(tries, max_attempt, failures, max_failure) else "ready")
