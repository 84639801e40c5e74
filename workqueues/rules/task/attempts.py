"""What a try does to an input file: its counts, and whether it may be tried again (decision D1)."""

from __future__ import annotations

from typing import Literal, NamedTuple

Outcome = Literal["finished", "failed", "returned", "closed", "cancelled"]
"""How the job that used the file ended; `returned` stands for any end that was not the job's failure."""


class Tried(NamedTuple):
    """The file after the try."""

    attempt_nr: int
    failed_attempt: int
    status: Literal["finished", "ready", "failed"]


def after_try(attempt_nr: int, max_attempt: int | None, failed_attempt: int, max_failure: int | None, outcome: Outcome) -> Tried:
    """The counts and status of a file after one more try; a limit of None is no limit.

    attempt_nr counts every try, closed and cancelled ones too; failed_attempt failures only. Given up at either limit.
    """
    tries = attempt_nr + 1
    failures = failed_attempt + (outcome == "failed")
    if outcome == "finished":
        return Tried(tries, failures, "finished")
    given_up = (max_attempt is not None and tries >= max_attempt) or (max_failure is not None and failures >= max_failure)
    return Tried(tries, failures, "failed" if given_up else "ready")
