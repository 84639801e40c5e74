"""Kept decisions taken again under another configuration: which candidates pass then that did not, and the other way round. Pure.

Not here: reading the decisions (`brokerage.queries.config_replay`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from brokerage.rules.decision.assembly import DecisionRequest, TaskDecision, decide_task
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.policy_choice import NUCLEUS
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.facts.ask import Ask
from workqueues.rules.jobs.activity import activity_of


class Touched(NamedTuple):
    """Whether values differ that the policy itself reads, or the job broker whose hint the choice of a nucleus hears."""

    own: bool
    hint: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """One decision before and after: candidates that pass only then (`gained`) or only now (`lost`), and both outcomes."""

    gained: frozenset[str]
    lost: frozenset[str]
    outcome_before: str
    outcome_after: str


@dataclass(slots=True)
class Tally:
    """What many compared decisions say together; `untouched`: those whose policy reads no value that changes."""

    decisions: int = 0
    untouched: int = 0
    unchanged: int = 0
    gain: int = 0
    lose: int = 0
    to_pending: int = 0
    to_assign: int = 0
    gained: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def add(self, compared: Compared | None) -> None:
        """Count one decision; None: nothing that it reads changes."""
        self.decisions += 1
        if compared is None:
            self.untouched += 1
            self.unchanged += 1
            return
        moved = compared.outcome_before != compared.outcome_after
        self.unchanged += not (compared.gained or compared.lost or moved)
        self.gain += bool(compared.gained)
        self.lose += bool(compared.lost)
        self.to_pending += moved and compared.outcome_after == "pending"
        self.to_assign += moved and compared.outcome_before == "pending"
        self.gained.update(compared.gained)
        self.lost.update(compared.lost)

    def candidates(self) -> Iterator[tuple[str, int, int]]:
        """Each candidate that some decision gains or loses, with how many do; the most first."""
        names = sorted(self.gained.keys() | self.lost.keys())
        yield from sorted(
            ((name, self.gained[name], self.lost[name]) for name in names), key=lambda row: (-(row[1] + row[2]), row[0])
        )


def touched(policy: Policy, ask: Ask, before: BrokerConfig, after: BrokerConfig) -> Touched:
    """Whether a decision about such an ask, as this policy took it, reads a value that differs. Raises NoPolicy."""
    own = _differ(ask, _activity(policy, ask), before, after)
    return Touched(own, policy.activity == NUCLEUS and _differ(ask, activity_of(ask.prod_source_label), before, after))


def compared(request: DecisionRequest, hint: bool, before: BrokerConfig, after: BrokerConfig) -> Compared:
    """Take the decision of a request under both configurations, by the policy that each of them names.

    `hint`: that of the job broker, kept with the decision, is made anew. Raises NoPolicy where a policy is not there.
    """
    if hint:
        request = request._replace(task_facts=replace(request.task_facts, able_queues=None))
    activity, vo = _activity(request.policy, request.ask), request.ask.vo
    now, then = (decide_task(request._replace(policy=config.policy(vo, activity), config=config)) for config in (before, after))
    passed, passing = set(_passing(now)), set(_passing(then))
    return Compared(frozenset(passing - passed), frozenset(passed - passing), now.decision.outcome, then.decision.outcome)


def _activity(policy: Policy, ask: Ask) -> str:
    return NUCLEUS if policy.activity == NUCLEUS else activity_of(ask.prod_source_label)


def _differ(ask: Ask, activity: str, before: BrokerConfig, after: BrokerConfig) -> bool:
    """Whether the policies of an activity, or the values that they read, differ."""
    now, then = before.policy(ask.vo, activity), after.policy(ask.vo, activity)
    return now is not then or before.values(now, ask.vo) != after.values(then, ask.vo)


def _passing(task_decision: TaskDecision[Any]) -> list[str]:
    rows = np.flatnonzero(task_decision.decision.first < 0)
    names: list[str] = task_decision.inputs.columns.name[rows].tolist()
    return names
