"""Parts of files of which lost outputs are made again: each job gets just the events that the one before had (row J10). Pure.

The file of such a task counts only the events that are wanted of it; their ranges have the places that they have in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workqueues.rules.jobs.event_ranges import Free, InputFile, Piece, joined_pieces

Beginning = tuple[str, int]
"""The first file of a job, and its first event there, counted from 0: no two jobs of a task have the same."""


class WantedPart(NamedTuple):
    """Events of a file, from `first` up to `stop`, that one job had, as the `position`-th of what it had."""

    job_id: int
    position: int
    first: int
    stop: int


class PartOfJob(NamedTuple):
    """A piece and the job that had it before."""

    piece: Piece
    job_id: int | None


def parts_of_jobs(
    files: Sequence[InputFile], wanted: Mapping[str, Sequence[WantedPart]], free: Mapping[int, Sequence[Free]]
) -> list[PartOfJob]:
    """The free pieces of the files, those of one job before together and in its order.

    `wanted`: by name of the file, a file without them is used whole; `free`: the free events of files of which some were tried,
    by id.
    """
    found: list[tuple[tuple[int, int], PartOfJob]] = []
    for file in files:
        if file.lfn not in wanted:
            found.append(((file.boundary_id or 0, 0), PartOfJob(Piece(file.id, 0, 0), file.boundary_id)))
        for part in wanted.get(file.lfn, ()):
            runs = [Free(part.first, part.stop)] if file.id not in free else _within(part, free[file.id])
            found += [
                ((part.job_id, part.position), PartOfJob(piece, part.job_id)) for piece in joined_pieces(file.id, runs) if runs
            ]
    return [part for _, part in sorted(found, key=lambda each: each[0])]


def _within(part: WantedPart, runs: Sequence[Free]) -> list[Free]:
    return [
        run._replace(first=max(run.first, part.first), stop=min(run.stop, part.stop))
        for run in runs
        if run.first < part.stop and part.first < run.stop
    ]
