"""The numbered rows of pseudo datasets: records that stand for the jobs of a task without input, and random seeds.

A seed is a row of the task's seed dataset; a failed job's row is free again and goes to the next job, whichever that is. The
value that the payload sees is the row's number plus the task's offset. Source: seed 001, "Pseudo datasets and files", "Random
seed assignment"; facts on workflows 7.12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

PREFIX = "pseudo_"


class PseudoFile(NamedTuple):
    """One record: its name, its number, its events, and the number of its first event (0 if the task does not count events)."""

    lfn: str
    number: int
    n_events: int
    first_event: int


def pseudo_files(
    count: int, *, offset: int = 0, n_events: int | None = None, events_per_file: int | None = None, first_event: int = 0
) -> Iterator[PseudoFile]:
    """`count` records numbered from 1 + offset.

    With `events_per_file` each has so many events, the last one what is left of `n_events`; event numbers begin at 1 +
    first_event.
    """
    each = events_per_file or 0
    for i in range(count):
        events = each if n_events is None or not each else max(0, min(each, n_events - i * each))
        yield PseudoFile(pseudo_name(1 + offset + i), 1 + offset + i, events, 1 + first_event + i * each if each else 0)


def pseudo_name(number: int) -> str:
    return f"{PREFIX}{number:06d}"


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
