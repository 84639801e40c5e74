"""How the work of a task is cut into elements (row W1, facts on work queues b4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class EventSlice(NamedTuple):
    """Events of a task without input, `first` to `last`, in so many jobs."""

    first: int
    last: int
    jobs: int


def jobs_of_dataset(size: int, slice_size: int) -> int:
    """Jobs of an element that has one dataset, as far as it can be told beforehand: at least one, also of an empty dataset.

    `size` and `slice_size` (above 0): files or events, whatever the task is cut by.
    """
    if slice_size < 1:
        raise ValueError(f"a job has at least one file or event, not {slice_size}")
    return max(1, -(-size // slice_size))


def event_slices(first: int, events: int, events_per_job: int, jobs_per_element: int) -> Iterator[EventSlice]:
    """So many events from `first` on, in elements of at most so many jobs; the last element and its last job are smaller."""
    if events_per_job < 1 or jobs_per_element < 1:
        raise ValueError("a job has at least one event, and an element at least one job")
    end, step = first + events, events_per_job * jobs_per_element
    for start in range(first, end, step):
        stop = min(start + step, end)
        yield EventSlice(start, stop - 1, -(-(stop - start) // events_per_job))
