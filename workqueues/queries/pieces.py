"""What is free of the files of a task whose events are cut into jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from broker_site.foundation.sql.prepared import Prepared
from workqueues.rules.jobs.event_ranges import Free, Try, free_events
from workqueues.states import EVENT


class CutFile(Protocol):
    """What must be known of a file (a read-only view: a row or a light record does)."""

    @property
    def id(self) -> int: ...
    @property
    def n_events(self) -> int | None: ...


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


_RANGES = Prepared(
    "ranges_of_files",
    "bigint[], text[]",
    """
    SELECT r.file_id, f.max_attempt, f.max_failure, r.def_min_event_id, r.def_max_event_id + 1, r.attempt_nr, r.failed_attempt,
        r.job_id, r.status = ANY($2)
    FROM workqueues_eventrange r JOIN workqueues_file f ON f.id = r.file_id WHERE r.file_id = ANY($1) ORDER BY r.file_id, r.id
    """,
)


def free_pieces(files: Sequence[CutFile]) -> list[Piece]:
    """The free pieces of `files`, in order of file id and first event; one statement.

    They stay free while the caller holds the claim and the files are picked: the end of other jobs only adds to them.
    """
    tried: dict[int, list[Try]] = defaultdict(list)
    limits: dict[int, tuple[int | None, int | None]] = {}
    for file_id, max_attempt, max_failure, *about in _RANGES.run([f.id for f in files], [*EVENT.with_job, *EVENT.processed]):
        tried[file_id].append(Try(*about))
        limits[file_id] = (max_attempt, max_failure)
    found: list[Piece] = []
    for file in sorted(files, key=lambda f: f.id):
        if not file.n_events:
            found.append(Piece(file.id, 0, 0))
        elif file.id not in tried:
            found.append(Piece(file.id, 0, file.n_events, (Free(0, file.n_events),)))
        else:
            found += _joined(file.id, free_events(file.n_events, tried[file.id], *limits[file.id]))
    return found


def _joined(file_id: int, runs: Sequence[Free]) -> Iterator[Piece]:
    """Pieces of runs that touch."""
    breaks = [i for i, run in enumerate(runs) if i == 0 or runs[i - 1].stop < run.first]
    for start, stop in pairwise([*breaks, len(runs)]):
        parts = tuple(runs[start:stop])
        yield Piece(file_id, parts[0].first, parts[-1].stop - parts[0].first, parts)
