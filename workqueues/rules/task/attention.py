"""Which of somebody's tasks need their attention, and why: what waits for them, or goes badly."""

from __future__ import annotations

from typing import NamedTuple

from workqueues.states import TASK

FAILING = 0.3
"""A task of whose ended input files more than this part was given up goes badly."""
ENOUGH = 10
"""Input files that have to have ended before that is said."""
WAITS_S = 3600.0
"""A task may wait for a place for so long before somebody has to look, s."""


class Course(NamedTuple):
    """How a task stands: its status and for how long, s; its input files that are finished and given up."""

    status: str
    for_s: float
    finished: int = 0
    failed: int = 0


def attention(course: Course) -> str:
    """Why the task needs attention, in a few words; empty where it does not."""
    if course.status == "exhausted":
        return "stopped: tell it to retry, to finish, or kill it"
    if course.status in TASK.corrupted and course.status != "aborted":
        return "ended badly"
    if course.status == "pending" and course.for_s > WAITS_S:
        return f"{course.status} for {_hours(course.for_s)}"
    ended = course.finished + course.failed
    if ended >= ENOUGH and course.failed > FAILING * ended:
        return f"{course.failed} of {ended} ended files failed"
    return ""


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"
