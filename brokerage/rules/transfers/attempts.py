"""What follows from an attempt that failed: another one, from where and when, or the end of the transfer. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from brokerage.rules.transfers.backoff import backoff_s
from brokerage.rules.transfers.reasons import ENDS, OTHER_SOURCE, REASONS

BAD_AFTER = 2
"""A copy whose content was wrong in so many attempts of a transfer is bad: nobody reads it any more."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that is under way, as the transfer has it. `failed`: the endpoints to blame for earlier ones."""

    number: int
    key: UUID | None
    source: str
    failed: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class NextStep:
    """Whether the transfer is over, else how long it rests (None: not at all). `failed_source`: the endpoint to blame.

    `bad_source`: the copy there has another content than the catalogue says.
    """

    over: bool
    reason: str
    wait_s: float | None = None
    failed_source: str | None = None
    bad_source: bool = False


def known_reason(reason: str) -> str:
    """The reason that a backend gave, if it is one of the list."""
    return reason if reason in REASONS else "unknown"


def after_failure(attempt: Attempt, reason: str, config: Mapping[str, Any]) -> NextStep:
    """What follows. A source that failed for the first time gives way to the next at once; all else rests longer each time.

    `config`: the keys of the component `transfers`.
    """
    blamed = attempt.source if reason in OTHER_SOURCE else None
    bad = reason == "source_corrupt" and list(attempt.failed).count(attempt.source) + 1 >= BAD_AFTER
    if reason in ENDS or attempt.number >= config["MAX_ATTEMPTS"]:
        return NextStep(True, reason, failed_source=blamed, bad_source=bad)
    wait_s: float | None = backoff_s(attempt.number, attempt.key, config["BACKOFF"], config["BACKOFF_MAX"])
    if blamed is not None and attempt.source not in attempt.failed:
        wait_s = None
    return NextStep(False, reason, wait_s, blamed, bad)
