"""The numbered rows of pseudo datasets: records that stand for the jobs of a task without input, and random seeds.

A seed is a row of the task's seed dataset; a failed job's row is free again and goes to the next job, whichever that is. The
value that the payload sees is the row's number plus the task's offset. Source: seed 001, "Pseudo datasets and files", "Random
seed assignment"; facts on workflows 7.12.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import count as numbers
from itertools import islice

from workqueues.rules.jobs.feeding import NewFile

PREFIX = "pseudo_"


def pseudo_files(
    count: int,
    *,
    offset: int = 0,
    n_events: int | None = None,
    events_per_file: int | None = None,
    used: Collection[str] = (),
) -> Iterator[NewFile]:
    """`count` records numbered from 1 + offset, without those whose names are `used`.

    With `events_per_file` each has so many events, the last one what is left of `n_events`; without it events are not counted.
    """
    each = events_per_file or 0
    names = (name for n in numbers(1 + offset) if (name := f"{PREFIX}{n:06d}") not in used)
    for i, name in enumerate(islice(names, count)):
        events = each if n_events is None or not each else max(0, min(each, n_events - i * each))
        yield NewFile(name, n_events=events or None, first_event=1 + i * each if each else None)


def number_of(lfn: str) -> int:
    """The number that a record's name holds: what `${SEQNUMBER}` stands for. ValueError for any other name."""
    if not lfn.startswith(PREFIX):
        raise ValueError(f"{lfn!r} is not the name of a pseudo file")
    return int(lfn[len(PREFIX) :])


def choose_seeds(free: Iterable[int], largest: int, wanted: int) -> tuple[list[int], list[int]]:
    """Row numbers for `wanted` jobs: free ones to use again, lowest first, and new ones behind `largest` (0 if there is none
    yet).
    """
    again = sorted(free)[: max(wanted, 0)]
    missing = max(wanted, 0) - len(again)
    return again, list(range(largest + 1, largest + 1 + missing))


def seed_value(number: int, offset: int) -> int:
    """What `${RNDMSEED}` stands for."""
    return number + offset
