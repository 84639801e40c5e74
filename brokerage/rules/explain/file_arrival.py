"""Why a file is not where it is wanted yet, in one sentence, and what each reason of a transfer means.

Pages, JSON, REST and the command line say these same words. Pure: the facts come from `brokerage.queries.file_arrival`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

REASON_WORDS: Mapping[str, str] = {
    "no_source": "no copy of it is left",
    "quota": "there is no quota for it at the destination",
    "refused": "the destination does not take it",
    "expired": "it was not brought in the time that a transfer has",
    "no_wish": "nobody wants it there any more",
    "operator": "an operator ended it",
    "source_missing": "the source does not have it",
    "source_corrupt": "the copy at the source is damaged",
    "checksum": "what arrived is not what was sent",
    "dst_full": "the destination is full",
    "dst_down": "the destination is down",
    "src_down": "the source is down",
    "link_blocked": "the link is blocked",
    "link_full": "the link has no room",
    "auth": "the storage does not let us in",
    "timeout": "the copy was silent for too long",
    "unknown": "the copy failed",
    "seen": "it was found there",
}
"""Each reason of a transfer in words; they follow "failed:" and "because"."""

MOST_AHEAD = 1000
"""Transfers before one on its link that are counted."""


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A copy of a file. `state` and `kind`: of the replica."""

    storage: str
    state: str = "available"
    kind: str = "origin"


class LinkLoad(NamedTuple):
    """What is on the link of a transfer and at its ends, and what may be: under way on it (plain ones alone where only those
    have no room), into its destination, out of its source; due before it, at most MOST_AHEAD. `halved`: by failures.
    """

    active: int
    most: int
    ahead: int = 0
    halved: bool = False
    into: int = 0
    out_of: int = 0
    storage_most: int = 1


@dataclass(frozen=True, slots=True)
class Bringing:
    """A transfer of the file. `attempt`: attempts begun; `reason`, `message`: of the last failure, or of the end; `who` ended it.

    `source_fault`: why it could not be brought from anywhere now. `unclaimed`: no mover has taken it yet. `load` is None where
    nobody looked.
    """

    destination: str
    status: str
    since: datetime
    source: str = ""
    source_site: str = ""
    destination_site: str = ""
    attempt: int = 0
    reason: str = ""
    message: str = ""
    next_at: datetime | None = None
    who: str = ""
    source_fault: str = ""
    unclaimed: bool = False
    load: LinkLoad | None = None

    @property
    def open(self) -> bool:
        return self.status in STANDS


@dataclass(frozen=True, slots=True)
class FileArrival:
    """A file, the storage endpoint where it is asked for (empty: wherever it goes), and what is known of its way there.

    `transfer`: the open one to that place, else the last that ended. `removed`: why a copy that was there has gone.
    """

    lfn: str
    storage: str
    now: datetime
    copies: Sequence[FileCopy] = field(default=())
    transfer: Bringing | None = None
    removed: str = ""

    @property
    def place(self) -> str:
        """Where it is asked for; empty: nobody has asked for it anywhere."""
        return self.storage or (self.transfer.destination if self.transfer is not None else "")

    @property
    def here(self) -> bool:
        return any(copy.storage == self.place and copy.state == "available" for copy in self.copies)


def sentence(arrival: FileArrival) -> str:
    """Why the file is not there yet, or that it is."""
    transfer, place = arrival.transfer, arrival.place
    copy = next((c for c in arrival.copies if c.storage == place), None)
    if copy is not None and copy.state == "available":
        return f"{arrival.lfn} is at {copy.storage}{', as a cache copy' if copy.kind == 'cache' else ''}."
    if not place:
        return f"{arrival.lfn} {_elsewhere(arrival)}; nobody has asked for it anywhere else."
    if transfer is not None and transfer.open:
        return f"{arrival.lfn} is not at {place} yet: {stand(transfer, arrival.now)}."
    if copy is not None:
        fault = "is damaged" if copy.state == "bad" else "is about to be removed"
        return f"{arrival.lfn} is not at {place}: the copy there {fault}{_ended(transfer, '; ')}."
    if transfer is None:
        return f"{arrival.lfn} is not at {place}: nobody has asked for it there; it {_elsewhere(arrival)}."
    gone = f"; since then the copy was removed: {arrival.removed}" if arrival.removed and transfer.status == "done" else ""
    return f"{arrival.lfn} is not at {place}: {stand(transfer, arrival.now)}{gone}; it {_elsewhere(arrival)}."


def stand(transfer: Bringing, now: datetime) -> str:
    """How far a transfer is, as a part of a sentence that has "it" for the file."""
    return STANDS.get(transfer.status, _end)(transfer, now)


def failure(reason: str, message: str) -> str:
    """A reason with its message, where that says more."""
    words = REASON_WORDS.get(reason, reason)
    text = message.strip().rstrip(".")
    return f"{words} ({text})" if text and text != words else words


def _queued(transfer: Bringing, now: datetime) -> str:
    tried = f"; attempt {transfer.attempt} failed: {failure(transfer.reason, transfer.message)}" if transfer.reason else ""
    if transfer.next_at is not None and transfer.next_at > now:
        return f"it is tried {'again ' if transfer.attempt else ''}at {_time(transfer.next_at)}{tried}"
    if transfer.source_fault:
        return f"it cannot be brought now: {transfer.source_fault}{tried}"
    return f"{_turn(transfer)}{tried}"


def _turn(transfer: Bringing) -> str:
    load = transfer.load
    source = f" from {transfer.source}" if transfer.source else ""
    if load is None:
        return f"it waits for its turn to be brought{source}"
    link = f"from {transfer.source_site} to {transfer.destination_site}"
    ahead = f"{load.ahead:,}{' or more' if load.ahead >= MOST_AHEAD else ''} {'goes' if load.ahead == 1 else 'go'} before it"
    if load.most <= 0:
        return f"it waits for the link {link}, on which no transfer may begin; {ahead}"
    if load.active >= load.most:
        halved = ", half as many as else since many failed" if load.halved else ""
        under_way = f"{load.active:,} of {load.most:,} transfers are under way{halved}"
        return f"it waits for room on the link {link}, where {under_way}; {ahead}"
    for place, what, n in ((transfer.destination, "to", load.into), (transfer.source, "from", load.out_of)):
        if place and n >= load.storage_most:
            return f"it waits for room at {place}, {what} which {n:,} of {load.storage_most:,} transfers are under way; {ahead}"
    return f"it waits for its turn on the link {link}: {load.active:,} under way; {ahead}"


def _submitting(transfer: Bringing, now: datetime) -> str:
    return f"it is being handed over to be copied from {transfer.source} since {_time(transfer.since)}{_nth(transfer)}"


def _submitted(transfer: Bringing, now: datetime) -> str:
    if transfer.unclaimed:
        return f"it waits for a mover since {_time(transfer.since)}, to be copied from {transfer.source}{_nth(transfer)}"
    return f"it is being copied from {transfer.source} since {_time(transfer.since)}{_nth(transfer)}"


def _end(transfer: Bringing, now: datetime) -> str:
    by = f" by {transfer.who}" if transfer.who else ""
    if transfer.status == "done":
        return f"it was brought from {transfer.source} at {_time(transfer.since)}"
    why = failure(transfer.reason, transfer.message)
    if transfer.status == "failed":
        times = f" after {transfer.attempt} attempt{'s' if transfer.attempt != 1 else ''}" if transfer.attempt else ""
        return f"bringing it was given up at {_time(transfer.since)}{times}{f': {why}' if why else ''}"
    return f"bringing it was cancelled at {_time(transfer.since)}{by}{f': {why}' if why else ''}"


STANDS = {"queued": _queued, "submitting": _submitting, "submitted": _submitted}
"""Of a transfer that is open; every other one has ended."""


def _ended(transfer: Bringing | None, join: str) -> str:
    return f"{join}{_end(transfer, transfer.since)}" if transfer is not None else ""


def _nth(transfer: Bringing) -> str:
    return f", in attempt {transfer.attempt}" if transfer.attempt > 1 else ""


def _elsewhere(arrival: FileArrival) -> str:
    there = [copy.storage for copy in arrival.copies if copy.state == "available"]
    return f"is at {', '.join(there)}" if there else "has no copy that could be read anywhere"


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
