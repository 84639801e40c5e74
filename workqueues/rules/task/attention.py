"""Which of somebody's tasks need their attention, and why: what waits for them, or goes badly."""

from __future__ import annotations

from typing import NamedTuple

from workqueues.states import TASK

FAILING = 0.3
"""A task of whose ended input files more than this part was given up goes badly."""
ENOUGH = 10
"""Input files that have to have ended before that is said."""
FAILING_JOBS, ENOUGH_JOBS, NEWEST_JOBS = 0.5, 5, 20
"""The same of the newest jobs that finished or failed: a job may fail often before a file of it is given up."""
WAITS_S = 3600.0
"""A task may wait for a place for so long before somebody has to look, s."""


class Course(NamedTuple):
    """How a task stands: its status and for how long, s; its input files that are finished and given up, and how the newest of
    its jobs ended.
    """

    status: str
    for_s: float
    finished: int = 0
    failed: int = 0
    jobs_finished: int = 0
    jobs_failed: int = 0


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
    if course.status in TASK.live:
        return _of_jobs(course.jobs_finished + course.jobs_failed, course.jobs_failed)
    return ""


def _of_jobs(ended: int, failed: int) -> str:
    if ended < ENOUGH_JOBS or failed <= FAILING_JOBS * ended:
        return ""
    newest = f"the last {ended}" if ended >= NEWEST_JOBS else ""
    if failed == ended:
        return f"{newest or f'all {ended}'} ended jobs failed"
    return f"{failed} of {newest or ended} ended jobs failed"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"
