"""What follows from the failure of a job beside one more try: which retry rules match its errors, and which of these hold. Pure.

Source: facts on commands and retry 3.4; decision D5. Not here: the rows (`brokerage.models.retry_rule`), what the actions do
(`brokerage.ledger.retry_actions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from workqueues.rules.shares.patterns import pattern_fault

NO_RETRY, LIMIT_RETRY, INCREASE_MEMORY = "no_retry", "limit_retry", "increase_memory"
REDUCE_INPUT, NOT_COUNTED, INCREASE_CPUTIME = "reduce_input_per_job", "not_counted", "increase_cputime"

ACTIONS = {
    NO_RETRY: "no retry",
    LIMIT_RETRY: "limited tries",
    INCREASE_MEMORY: "more memory",
    INCREASE_CPUTIME: "more time",
    REDUCE_INPUT: "less input",
    NOT_COUNTED: "counts as no failure",
}
"""Action -> its words."""
LIMITING = (NO_RETRY, LIMIT_RETRY)
"""Of these the strictest of the most specific rules holds; of each other action the first of the most specific ones."""

COMPONENTS = {
    "pilot": "the pilot: its error code",
    "payload": "the payload: its exit code",
    "broker": "the broker: its judgement",
}
"""Who says what went wrong -> words."""

LONGEST_MESSAGE = 256
"""Characters of a message that patterns look at: each costs time."""


class JobError(NamedTuple):
    """One error of a job; of a payload the code is its exit code."""

    component: str
    code: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class FailedJob:
    """What rules ask of a job that failed; its errors in the order in which they are judged."""

    errors: Sequence[JobError]
    vo: str = ""
    architecture: str = ""
    release: str = ""
    computing_queue: str = ""
    work_queue: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; what is empty matches everything.

    `pattern`: a regular expression, matched from the beginning of the message. `max_attempt`: of limit_retry. A rule that is not
    `active` is told where it would hold, and does nothing.
    """

    name: str
    action: str
    vo: str = ""
    component: str = ""
    code: str = ""
    pattern: str = ""
    architecture: str = ""
    release: str = ""
    computing_queue: str = ""
    work_queue: int | None = None
    max_attempt: int | None = None
    active: bool = True

    def matches(self, job: FailedJob, error: JobError) -> bool:
        """Whether the rule is for this error of this job; a pattern that is none matches nothing."""
        asked = (
            (self.component, error.component),
            (self.code, error.code),
            (self.vo, job.vo),
            (self.architecture, job.architecture),
            (self.release, job.release),
            (self.computing_queue, job.computing_queue),
            (self.work_queue, job.work_queue),
        )
        return all(want in ("", None, have) for want, have in asked) and _begins(self.pattern, error.message)

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """The lower the sooner it holds: by what of the job it names, then of the error; then the stricter one."""
        of_job = (self.vo, self.architecture, self.release, self.computing_queue, self.work_queue)
        of_error = (self.component, self.code)
        most = 0 if self.action == NO_RETRY else self.max_attempt or 0
        return -sum(each not in ("", None) for each in of_job), -sum(map(bool, of_error)), most, self.name


class Chosen(NamedTuple):
    """The rules that hold for a failed job, and those that would if they were active."""

    rules: tuple[Rule, ...] = ()
    idle: tuple[Rule, ...] = ()

    def action(self, name: str) -> Rule | None:
        """The rule with this action that holds."""
        return next((rule for rule in self.rules if rule.action == name), None)

    @property
    def limit(self) -> Rule | None:
        """The rule that ends or limits the tries."""
        return next((rule for rule in self.rules if rule.action in LIMITING), None)


NOTHING = Chosen()


def chosen(rules: Iterable[Rule], job: FailedJob) -> Chosen:
    """The rules that hold: of the first error for which there is an active one; of each action one, the most specific. More time
    does not end the search: what else follows may stand in a later error.

    Source: facts on commands and retry 3.4.
    """
    known = sorted(rules, key=lambda rule: rule.rank)
    held: tuple[Rule, ...] = ()
    idle: tuple[Rule, ...] = ()
    for error in job.errors:
        matching = [rule for rule in known if rule.matches(job, error)]
        idle += _one_each(rule for rule in matching if not rule.active)
        held = _one_each((*held, *(rule for rule in matching if rule.active)))
        if any(rule.action != INCREASE_CPUTIME for rule in held):
            break
    return Chosen(held, idle)


def _one_each(ranked: Iterable[Rule]) -> tuple[Rule, ...]:
    by_action: dict[str, Rule] = {}
    for rule in ranked:
        by_action.setdefault("limit" if rule.action in LIMITING else rule.action, rule)
    return tuple(by_action.values())


def fault_of_pattern(pattern: str) -> str:
    """What is wrong with a pattern; empty if nothing. One that compiles may still take too long for a text."""
    return pattern_fault(pattern, LONGEST_MESSAGE) if pattern else ""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    return None if fault_of_pattern(pattern) else re.compile(pattern, re.DOTALL)


def _begins(pattern: str, message: str) -> bool:
    if not pattern:
        return True
    compiled = _compiled(pattern)
    return compiled is not None and compiled.match(message[:LONGEST_MESSAGE]) is not None
