"""The port to what moves files. A backend knows copies by the key of an attempt, and nothing of transfers, wishes and jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """A copy to be made. Paths are below the storage endpoints; `checksum` is the adler32 as 8 hex digits.

    `mb_per_s`: limit of the link, of all its copies together; `urgency`: the higher the sooner.
    """

    key: UUID
    source: str
    source_path: str
    destination: str
    destination_path: str
    bytes: int
    checksum: str
    mb_per_s: float | None = None
    urgency: int = 0
    activity: str = ""
    tape: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an order was not taken: one of the reasons of `rules.transfers.reasons`, and words."""

    reason: str
    message: str


CopyState = Literal["under way", "done", "failed"]


@dataclass(frozen=True, slots=True)
class CopyReport:
    """How a copy is. `reason` and `message`: of one that failed. `copied`: bytes so far."""

    key: UUID
    state: CopyState
    reason: str = ""
    message: str = ""
    copied: int = 0


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """A copy that stands on a storage endpoint, by its path below it."""

    storage: str
    path: str


class FileFault(str):
    """Why one copy may still be there, where nothing else at its storage is concerned."""

    __slots__ = ()


class NotRemovable(FileFault):
    """The same where trying again is of no use: what stands there is no file, or must not be removed."""

    __slots__ = ()


class Backend(Protocol):
    """What moves files. Any call may raise; what was asked is then asked again.

    A copy is `done` only when it stands at its destination under its name with the size and checksum that were ordered, and is on
    disk. Nothing that stands there under the name is ever overwritten: the same content is `done`, another one `failed`.
    """

    name: str

    def submit(self, orders: Sequence[CopyOrder]) -> Mapping[UUID, Refusal]:
        """Take these orders: those that were refused. The same key again is the same copy, whatever became of it."""

    def find(self, keys: Collection[UUID]) -> Mapping[UUID, CopyReport]:
        """How these copies are; those that are not known are missing."""

    def ended(self, most: int) -> Sequence[CopyReport]:
        """Copies that ended and were not forgotten. May leave out some (`find` tells of them), or tell one twice."""

    def cancel(self, keys: Collection[UUID]) -> None:
        """Give these up, and remove what was written of them, as soon as possible. One that ended, or is not known, stays so."""

    def forget(self, keys: Collection[UUID]) -> None:
        """What became of these was seen. One that is under way goes on."""

    def delete(self, copies: Collection[StoredCopy]) -> Mapping[StoredCopy, str]:
        """Remove these: those that may still be there, and why, in words. A copy that is not there is removed.

        Words that are a FileFault are about that copy alone; others are taken to be about its whole storage.
        Some are of no catalogue: the streams of a log, plain files beside it.
        """
