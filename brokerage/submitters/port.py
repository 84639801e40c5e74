"""The port to what starts pilots of submitted jobs: processes of this machine, later batch systems."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from brokerage.ledger.submission import Order


class NotStarted(Exception):
    """A pilot cannot be started; the message says why."""


class Pilots(NamedTuple):
    """Jobs whose pilots wait or run, and those whose pilots do not and never will, each with what is known of its end.

    Of pilots in neither nothing is known from here.
    """

    there: Collection[int]
    gone: Mapping[int, str]


class Submitter(Protocol):
    """What starts pilots. Any call may raise; what was asked is then asked again.

    A pilot may be started twice: of two that come for one job the second gets nothing.
    """

    name: str

    def fault(self) -> str:
        """Why nothing can be started from here; empty: it can."""

    def start(self, orders: Sequence[Order]) -> Mapping[int, str | NotStarted]:
        """Start these pilots: by job what is known of each from now on, at most 200 characters, or why it was not started.

        Those for which there is no room now are left out, and ordered again.
        """

    def look(self, handles: Mapping[int, str]) -> Pilots:
        """How these pilots are, by job."""
