"""The time-out rules of jobs as one table: for each state and kind how long, by which key, from when on, and how it ends.

The code (`timeouts`, the agent reap), the page that `manage.py timeouts` prints and the tests read it. Source: seed 000, timeout
rules, which counts every limit as time in a state and exempts no kind of job; facts on timeouts 4.1 for what practice does
otherwise, and for rules that only practice has. Decisions A3 (holding), B20 (where the document exempts nobody, none is), D4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB

ALL_KINDS = tuple(JobKind)


@dataclass(frozen=True, slots=True)
class TimeoutRule:
    """One rule. `limit`: key of component `job_timeout`, of `watcher` for a limit of silence; `queue_days`: attribute of a queue
    that replaces it, in days.

    `since`: the time counts from when the state was entered, or from the last sign of life. `priority`: high is from the key
    HIGH_PRIORITY on. `inactive`: only at queues where no job began for INACTIVE_AFTER. `staging`: only jobs with a sub status,
    which is how a stage-out of the site's own shows. `practice`: what practice does otherwise, in words.
    """

    state: str
    limit: str
    ending: Literal["closed", "failed"]
    source: Literal["document", "practice"] = "document"
    since: Literal["state", "sign of life"] = "state"
    priority: Literal["any", "low", "high"] = "any"
    inactive: bool = False
    staging: bool = False
    queue_days: str = ""
    kinds: tuple[JobKind, ...] = ALL_KINDS
    practice: str = ""


HEARTBEAT = "HEARTBEAT_TIMEOUT_<workflow>"
_CREATED, _CHANGED = "counts from the creation of the job", "counts from the last change of its row"
_NOT_MERGING = "spares merge jobs"
_BY_LABEL = "only jobs of production tasks"

RULES: tuple[TimeoutRule, ...] = (
    TimeoutRule("pending", "TIMEOUT_pending", "closed", practice=_CREATED),
    TimeoutRule("defined", "TIMEOUT_defined", "closed", practice=f"{_CHANGED}, for builds from the creation"),
    TimeoutRule("waiting", "TIMEOUT_waiting", "closed", practice=f"1 hour, {_CREATED}, and spares co-jumbo jobs"),
    TimeoutRule("assigned", "TIMEOUT_assigned", "closed", practice=f"{_BY_LABEL}; {_CHANGED}"),
    TimeoutRule("throttled", "TIMEOUT_throttled", "closed", practice=_CREATED),
    TimeoutRule("activated", "TIMEOUT_activated", "closed", practice=f"{_BY_LABEL}; {_CHANGED}"),
    TimeoutRule(
        "activated", "TIMEOUT_inactive_high", "closed", priority="high", inactive=True, practice=f"{_BY_LABEL}; {_NOT_MERGING}"
    ),
    TimeoutRule("sent", "TIMEOUT_sent", "failed", practice=_CHANGED),
    TimeoutRule("starting", "TIMEOUT_starting", "closed", practice=_BY_LABEL),
    TimeoutRule(
        "starting", "TIMEOUT_inactive_high", "closed", priority="high", inactive=True, practice=f"{_BY_LABEL}; {_NOT_MERGING}"
    ),
    TimeoutRule("starting", HEARTBEAT, "failed", since="sign of life"),
    TimeoutRule("running", "TIMEOUT_running", "closed", practice=f"{_CREATED}, in any state with a pilot"),
    TimeoutRule("running", HEARTBEAT, "failed", since="sign of life"),
    TimeoutRule("holding", "TIMEOUT_holding", "failed", priority="low", practice="any priority"),
    TimeoutRule("holding", "TIMEOUT_holding_high", "failed", priority="high", practice="only above 800"),
    TimeoutRule(
        "transferring",
        "TIMEOUT_transferring",
        "failed",
        priority="low",
        queue_days="transtimelo",
        practice="6 days at every queue, from the end of the payload; spares jumbo jobs",
    ),
    TimeoutRule(
        "transferring",
        "TIMEOUT_transferring_high",
        "failed",
        priority="high",
        queue_days="transtimehi",
        practice="2 days at every queue, from the end of the payload; spares jumbo jobs",
    ),
    TimeoutRule(
        "transferring", HEARTBEAT, "failed", since="sign of life", staging=True, practice="would take such jobs, and selects none"
    ),
    TimeoutRule(
        "merging", "TIMEOUT_merging", "closed", "practice", practice="only jobs of users and tests; the document has no limit"
    ),
)
"""In the order of a job's life. Of several rules for one job that whose time is over first ends it."""

LEFT_OUT: Mapping[str, str] = {
    "7 days from the creation for jobs that no pilot had": "each of those states has a shorter limit of its own, and who pauses "
    "a task, so that its jobs come and go between them, says himself when it ends",
    "7 days without a change for jobs of users and tests that a pilot has": "running jobs of all labels have the 21 days of the "
    "document, and a job whose pilot is silent ends with its lease",
    "3 hours in holding for jobs of users": "the document has one limit for all labels, by priority",
    "10 minutes in waiting for merge jobs of fake co-jumbo jobs": "no jobs of events are made yet; it comes with them",
    "24 hours for jobs of events, and their merge jobs, that start or run": "no jobs of events are made yet; it comes with them",
    "30 minutes for merge jobs of which an input is gone": "such a merge job ends at once, with the job that it was to merge",
    "2 hours until jobs in merging are looked at again": "the agent merge looks at them in every run",
    "jobs whose batch worker ended without a word": "batch workers are not reported to the broker; the lease ends such a job",
    "6 hours for activated simulation jobs at large sites": "only an older version of the document has it",
    "looking at transferring jobs again after 1 or 2 hours": "a job is finished when its last file arrives, not when looked at",
}
"""Rules that are not built, as only practice has them, or an older document (seed 001): the rule, and why."""


@cache
def rules_of(state: str, kind: JobKind, since: str = "state") -> tuple[TimeoutRule, ...]:
    """The rules for a job of this kind in this state that count from there."""
    return tuple(rule for rule in RULES if rule.state == state and kind in rule.kinds and rule.since == since)


@cache
def kinds_alike(state: str) -> tuple[tuple[JobKind, ...], ...]:
    """The kinds of jobs, those together that may stay in this state by the same rules."""
    alike: dict[tuple[TimeoutRule, ...], list[JobKind]] = {}
    for kind in ALL_KINDS:
        alike.setdefault(rules_of(state, kind), []).append(kind)
    return tuple(map(tuple, alike.values()))


ENDINGS: Mapping[str, Literal["closed", "failed"]] = {
    state: next(rule.ending for rule in RULES if rule.state == state and rule.since == "state") for state in sorted(JOB.live)
}
"""How a job ends that stayed too long in a state: closed is no failure of its inputs, failed is one (facts on timeouts 4.1)."""
