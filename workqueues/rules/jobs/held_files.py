"""What becomes of an input that jobs could not read, from how its copies stand on storage (decisions D9, D16). Pure.

Nothing is concluded from a storage that is down: the file is held until it is back. Nothing is concluded either from one whose
root was never marked, but there the file is tried again as long as it has tries. Where a storage is up, a file that is absent or
damaged is lost or broken once it still is at a second look, a while later. One that reappears is ready again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

REPORTED = "reported "
"""How the reason begins of a file that a job could not read, or a transfer; it ends in ` at ` and the queue or storage."""

STORAGE_IS_BACK = "; it is back"
"""How the reason ends of a file that waited for a storage and is ready again."""

FoundCopy = Literal["intact", "absent", "damaged"]
Status = Literal["held", "ready", "lost", "broken"]


class CopyLook(NamedTuple):
    """One copy of a file: its storage, what was found there, and how the storage is; `doubt`: why nothing follows, in words."""

    storage: str
    found: FoundCopy
    state: Literal["up", "down", "unmarked"] = "up"
    doubt: str = ""


class HeldFile(NamedTuple):
    """A file to look for: its state (ready: it is held), why it is held, which storage it waits for, and since when it is not
    found on a storage that answers.
    """

    id: int
    lfn: str
    status: str
    held: str = ""
    storage: str = ""
    absent_since: datetime | None = None


class FileVerdict(NamedTuple):
    """What becomes of a file: its state, why, since when it is absent, and when it is looked for next (None: not at all)."""

    status: Status
    why: str
    absent_since: datetime | None = None
    look_due: datetime | None = None


class Pauses(NamedTuple):
    """Seconds: from the first look that misses a file to the one that calls it lost; between looks at a storage that is down."""

    confirm_s: float
    again_s: float


def first_reason(held: str) -> str:
    """Why a file was held in the first place, without what it waits for meanwhile."""
    return held.partition("; ")[0]


def storage_verdict(file: HeldFile, fault: str, now: datetime, pauses: Pauses) -> FileVerdict:
    """What becomes of a file that waits for a storage endpoint; `fault`: what is wrong with that, empty when it is back."""
    if fault:
        return FileVerdict("held", f"{first_reason(file.held)}; {fault}", None, now + timedelta(seconds=pauses.again_s))
    return FileVerdict("ready", f"{first_reason(file.held)}{STORAGE_IS_BACK}")


def unknown_dataset_verdict(file: HeldFile, vo: str, dataset: str, now: datetime, pauses: Pauses) -> FileVerdict:
    """What becomes of a file whose dataset the catalogue does not have: nobody knows of its copies, so nothing follows."""
    why = f"{first_reason(file.held)}; VO {vo} has no dataset {dataset} in the catalogue"
    return FileVerdict("held", why, None, now + timedelta(seconds=pauses.again_s))


def file_verdict(
    file: HeldFile, looks: Sequence[CopyLook], queues: Collection[str], now: datetime, pauses: Pauses
) -> FileVerdict:
    """What becomes of a file that jobs could not read at these queues, or of one that is lost, by how its copies stand.

    An intact copy counts more than the word of one queue; the word of two counts more than that of the catalogue.
    """
    reason = first_reason(file.held)
    intact = any(look.found == "intact" for look in looks)
    if file.status != "ready":
        if intact:
            return FileVerdict("ready", "it is there again")
        return FileVerdict("held", reason, file.absent_since, now + timedelta(seconds=pauses.confirm_s))
    doubts = {look.state: look.doubt for look in looks if look.state != "up"}
    disputed = intact and len(queues) > 1
    if intact and (doubts or not disputed):
        return FileVerdict("ready", f"{reason}; not confirmed")
    if "down" in doubts:
        return FileVerdict("held", f"{reason}; {doubts['down']}", None, now + timedelta(seconds=pauses.again_s))
    if doubts:
        return FileVerdict("ready", f"{reason}; {doubts['unmarked']}")
    since = file.absent_since or now
    confirmed_at = since + timedelta(seconds=pauses.confirm_s)
    if file.absent_since is None or now < confirmed_at:
        return FileVerdict("held", f"{reason}; looked for again before it counts as lost", since, confirmed_at)
    status: Status = "broken" if not intact and any(look.found == "damaged" for look in looks) else "lost"
    # What two queues cannot read although it is there would be found at once, and lost again.
    due = None if disputed else now + timedelta(seconds=pauses.confirm_s)
    return FileVerdict(status, f"{reason}; confirmed", since, due)
