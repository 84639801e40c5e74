"""Whether jobs may be made for a work queue or share, and how many (seed 001, job throttling; decision C6; facts 7; row J25).

A unit is a work queue or leaf share, times a resource type. Not here: counting jobs, locks, and which keys hold for a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

PRACTICE = frozenset({"limit", "brokerage_stuck", "waiting", "walltime", "high_priority"})
"""Rules that only practice has, each switched on by itself.

`limit`: without NQUEUELIMIT four bunches may always wait, and defined jobs do not make a bunch smaller. `brokerage_stuck`: no
more jobs while too many are only defined. `waiting`: nor while too many wait to be defined. `walltime`: short work does not count
as enough. `high_priority`: tasks above every job pass.
"""

RATIO = 2.0
"""Queued jobs for each running one, from which on no more are made (THROTTLE_THRESHOLD)."""

LEAST_BUNCH, MOST_BUNCH = 500, 600
NEARLY = 0.9
"""Part of the lower limit below which several generators may work at once."""

LONG_WORK_S = 50_000_000.0
"""Walltime of all queued jobs together from which on there is no shortage of work."""

FEW_WAITING = 500
"""A task of the same priority as the highest job may pass while fewer jobs than these do not run."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Jobs of a unit. `starting` with those just handed to a pilot; `waiting` are jobs not yet defined.

    `stranded`: those of the defined, assigned and activated that stand at a queue where they cannot start.
    `walltime_s`: of all queued jobs, None = not known. `top_priority`: the highest of any job; None without jobs.
    """

    running: int = 0
    defined: int = 0
    assigned: int = 0
    activated: int = 0
    starting: int = 0
    waiting: int = 0
    stranded: int = 0
    walltime_s: float | None = None
    top_priority: int | None = None

    def __add__(self, other: Counts) -> Counts:
        """The jobs of both; of two walltimes and priorities one that is not known does not count."""
        walltimes = [known for known in (self.walltime_s, other.walltime_s) if known is not None]
        priorities = [known for known in (self.top_priority, other.top_priority) if known is not None]
        return Counts(
            self.running + other.running,
            self.defined + other.defined,
            self.assigned + other.assigned,
            self.activated + other.activated,
            self.starting + other.starting,
            self.waiting + other.waiting,
            self.stranded + other.stranded,
            sum(walltimes) if walltimes else None,
            max(priorities, default=None),
        )

    @property
    def not_running(self) -> int:
        """Jobs that are placed and do not run yet."""
        return self.activated + self.assigned + self.starting

    @property
    def queued(self) -> int:
        return self.not_running + self.defined

    @property
    def startable(self) -> int:
        """Queued jobs that can start where they are: what counts beside those that run."""
        return max(self.queued - self.stranded, 0)

    def waiting_in_words(self) -> str:
        """How many wait, those that cannot start told apart."""
        apart = f" ({self.stranded} more stand where they cannot start)" if self.stranded else ""
        return f"{self.startable} jobs wait{apart}"


@dataclass(frozen=True, slots=True)
class Limits:
    """What is configured for the unit; None = not set.

    `lower`: NQUEUELIMIT, jobs that may always wait; `cap`: NQUEUECAP; `running_cap`: NRUNNINGCAP; `ratio`: THROTTLE_THRESHOLD.
    `practice`: rules of PRACTICE that are switched on. `unthrottled`: the unit is never throttled.
    """

    lower: int | None = None
    cap: int | None = None
    running_cap: int | None = None
    ratio: float = RATIO
    practice: frozenset[str] = frozenset()
    unthrottled: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """SKIP, or PASS for so many jobs (None: without limit); `lock`: others keep away from the unit while they are made.

    `rule` names what decided, `reason` says it with numbers. `least_priority`: only tasks of at least this priority pass.
    """

    decision: Literal["PASS", "SKIP"]
    max_jobs: int | None
    lock: bool
    rule: str
    reason: str
    least_priority: int | None = None

    def room(self, priority: int, made: int) -> int | None:
        """Jobs that may still be made for a task of this priority after `made` others of the unit; None without limit."""
        if self.decision == "SKIP" or (self.least_priority is not None and priority < self.least_priority):
            return 0
        return None if self.max_jobs is None else max(self.max_jobs - made, 0)


def throttled(
    counts: Counts,
    limits: Limits,
    task_priority: int | None = None,
    *,
    at_cap: Counts | None = None,
    at_running_cap: Counts | None = None,
) -> Verdict:
    """The verdict on a unit. `task_priority`: the highest of the tasks that wait for jobs and are not of users.

    `counts` at the level of the lower limit; `at_cap` and `at_running_cap` at those of the caps, where they differ.
    """
    if limits.unthrottled:
        return Verdict("PASS", None, False, "unthrottled", "it is never throttled")
    running = (counts if at_running_cap is None else at_running_cap).running
    if limits.running_cap is not None and running > limits.running_cap:
        return _skip("running_cap", f"{running} jobs run, the cap is {limits.running_cap}")
    for rule, reason in _reasons_to_skip(counts, limits, counts if at_cap is None else at_cap):
        if "high_priority" in limits.practice and (priority := _high_enough(counts, task_priority)) is not None:
            return _passed(counts, limits, priority)
        return _skip(rule, reason)
    return _passed(counts, limits)


def _skip(rule: str, reason: str) -> Verdict:
    return Verdict("SKIP", 0, False, rule, reason)


def _reasons_to_skip(counts: Counts, limits: Limits, at_cap: Counts) -> list[tuple[str, str]]:
    """Every rule that holds the unit back, the first decides."""
    queued, running, on = counts.startable, counts.running, limits.practice
    reasons = []
    enough = limits.lower if limits.lower is not None else 4 * _bunch(counts, limits)
    lower = enough if "limit" in on else limits.lower
    short = "walltime" in on and counts.walltime_s is not None and counts.walltime_s <= LONG_WORK_S
    if queued > exactly(limits.ratio) * running and not (lower is not None and queued < lower) and not short:
        allowed = "" if lower is None else f", and {lower} may always wait"
        reasons.append(("ratio", f"{counts.waiting_in_words()}, more than {limits.ratio:g} x {running} that run{allowed}"))
    if "brokerage_stuck" in on and counts.defined > enough:
        reasons.append(("brokerage_stuck", f"{counts.defined} jobs are only defined, the limit is {enough}"))
    if "waiting" in on and counts.waiting > (most := max(4 * running, 2 * _bunch(counts, limits))):
        reasons.append(("waiting", f"{counts.waiting} jobs wait to be defined, the limit is {most}"))
    if limits.cap is not None and at_cap.queued > limits.cap:
        reasons.append(("cap", f"{at_cap.queued} jobs wait, the cap is {limits.cap}"))
    return reasons


def _high_enough(counts: Counts, task_priority: int | None) -> int | None:
    """The priority of a waiting task that passes nevertheless: above every job, or the same while few jobs wait."""
    if task_priority is None:
        return None
    top = counts.top_priority
    if top is None or task_priority > top or (task_priority == top and counts.not_running < FEW_WAITING):
        return task_priority
    return None


def _passed(counts: Counts, limits: Limits, least_priority: int | None = None) -> Verdict:
    jobs = _bunch(counts, limits) // 2 if limits.cap is None else max(limits.cap // 5, 1)
    lock = True
    if limits.lower is not None and counts.startable < exactly(NEARLY) * limits.lower:
        jobs, lock = max(limits.lower // 20, jobs), False
    if least_priority is not None:
        return Verdict("PASS", jobs, lock, "high_priority", f"tasks of priority {least_priority} and more pass", least_priority)
    reason = f"{counts.waiting_in_words()}, {counts.running} run"
    return Verdict("PASS", jobs, lock, "pass", reason)


def exactly(ratio: float) -> Fraction:
    """A ratio as it is written: 0.7 x 90 is 63, which the product of floating-point numbers is not (decision H2)."""
    return Fraction(str(ratio))


def _bunch(counts: Counts, limits: Limits) -> int:
    """Jobs that would fill the unit up, within what is made at once."""
    queued = counts.not_running if "limit" in limits.practice else counts.queued
    room = exactly(limits.ratio) * counts.running - max(queued - counts.stranded, 0)
    return min(max(int(room), LEAST_BUNCH), MOST_BUNCH)
