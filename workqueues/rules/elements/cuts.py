"""How the files of a task are cut into elements (row W1; decision J2): runs of files that lie at the same places."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.jobs.pseudo_files import number_of


class Cut(NamedTuple):
    """Files of one element, and the storage endpoints that have all of them; none where they are nowhere, or are records."""

    files: Sequence[InputFile]
    storages: tuple[str, ...] = ()

    @property
    def n_events(self) -> int:
        return sum(file.n_events or 0 for file in self.files)


def cut_files(files: Sequence[InputFile], places: Mapping[str, Collection[str]], most: int) -> Iterator[Cut]:
    """Elements of at most so many files each, which lie at the same storage endpoints; in the order of the files, each place by
    itself, so that few are small. `places`: storages of each file by its name.
    """
    together: dict[tuple[str, ...], list[InputFile]] = {}
    for file in files:
        storages = tuple(sorted(places.get(file.lfn, ())))
        waiting = together.setdefault(storages, [])
        waiting.append(file)
        if len(waiting) == most:
            yield Cut(together.pop(storages), storages)
    for storages, rest in together.items():
        yield Cut(rest, storages)


def cut_records(records: Sequence[InputFile], most: int) -> Iterator[Cut]:
    """Elements of at most so many records whose numbers follow each other: a child makes them anew by the first number."""
    run: list[InputFile] = []
    for record in records:
        if run and (len(run) == most or number_of(record.lfn) != number_of(run[-1].lfn) + 1):
            yield Cut(run)
            run = []
        run.append(record)
    if run:
        yield Cut(run)
