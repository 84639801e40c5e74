"""When a payload ran, as far as its pilot can be believed: within the life of its job. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PayloadTimes:
    """When the payload began and ended; `notes`: what the pilot said instead, where that cannot be."""

    start: datetime | None
    end: datetime | None
    notes: list[str] = field(default_factory=list)


def is_within(start: datetime | None, end: datetime | None, made: datetime, now: datetime) -> bool:
    """Whether the times lie between the making of the job and now, in their order."""
    first = made if start is None else start
    return made <= first <= now and (end is None or first <= end <= now)


def payload_times(start: datetime | None, end: datetime | None, made: datetime, begun: datetime, now: datetime) -> PayloadTimes:
    """The reported times, each that is outside of the job's life (`made` to `now`) replaced by the server's.

    `begun`: when the server heard that the payload began, or gave the job away. An end before the start is replaced as well.
    """
    notes = []
    if start is not None and not made <= start <= now:
        notes.append(f"start_time {start.isoformat()} is outside of the life of the job, the time of the server stands instead")
        start = begun
    if end is not None and not (start or made) <= end <= now:
        notes.append(f"end_time {end.isoformat()} is outside of the life of the job, the time of the server stands instead")
        end = now
    return PayloadTimes(start, end, notes)
