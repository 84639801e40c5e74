"""How dispatch policies are declared: which of the task queues that suit a pilot is served, and which of its jobs (decision H4).

Ours are `brokerage.rules.dispatch.policies`; other packages declare theirs in the same way, and `DISPATCH_POLICY` names them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import ClassVar, NamedTuple, TypeVar

from broker_site.foundation.kernel.registry import Registry
from brokerage.rules.decision.policy_choice import unknown
from brokerage.rules.dispatch.waiting_list import Fitting, Unit, WaitingQueue


class Turn(NamedTuple):
    """What a policy may know besides the task queues: where each unit stands (the least is served first), and dice.

    `options`: the component `dispatch` of the configuration.
    """

    places: Callable[[Unit], float]
    dice: Random
    options: Mapping[str, object]


class JobWindow(NamedTuple):
    """Which job of a task queue is taken: of the `size` oldest ones with this priority one at random; 0: the first there is."""

    priority: int = 0
    size: int = 0


FIRST_JOB = JobWindow()


class DispatchPolicy(ABC):
    """Pure: the same dice give the same order."""

    name: ClassVar[str]
    by_group: ClassVar[bool] = False
    """Whether it asks for the weights of task queues in the share of their group."""

    @abstractmethod
    def order(self, fitting: Fitting, turn: Turn) -> Iterator[WaitingQueue]:
        """The task queues in the order in which they are tried; each at most once."""

    @abstractmethod
    def cpu_class(self, cpu_time_s: int) -> int:
        """The class of CPU time, s, in which jobs of this length wait together; 0 stays 0: it is not known.

        Whether a pilot can run them is judged by their own time, whatever their class.
        """

    def job_window(self, waiting: WaitingQueue, turn: Turn, priorities: Callable[[int], Mapping[float, int]]) -> JobWindow:
        """Which job of the task queue is taken. `priorities`: how many jobs of a task queue wait with each user priority."""
        return FIRST_JOB


DISPATCH_POLICIES: Registry[DispatchPolicy] = Registry("dispatch policy")

P = TypeVar("P", bound=type[DispatchPolicy])


def dispatch_policy(kind: P) -> P:
    """Declare a policy under its name."""
    DISPATCH_POLICIES.add(kind.name, kind())
    return kind


PolicyOf = Callable[[str], DispatchPolicy | None]
"""The policy of a VO; None: it cannot be used now, and the jobs of the VO wait."""


def dispatch_order(fitting: Fitting, policy_of: PolicyOf, turn: Turn) -> Iterator[tuple[WaitingQueue, DispatchPolicy]]:
    """The task queues that suit an ask, each with the policy of its VO, in the order in which they are tried.

    Where VOs with several policies have work here, their policies take turns at random, each as often as the others.
    """
    vos, served = fitting.vos, dict[DispatchPolicy, set[str]]()
    for vo in vos:
        if (policy := policy_of(vo)) is not None:
            served.setdefault(policy, set()).add(vo)
    policies = list(served)
    if len(policies) > 1:
        turn.dice.shuffle(policies)
    for policy in policies:
        mine = fitting if len(served[policy]) == len(vos) else fitting.only(served[policy])  # a VO without policy waits
        for waiting in policy.order(mine, turn):
            yield waiting, policy


def unusable_dispatch_policy(name: str) -> str | None:
    """Why no policy of that name can hand out jobs, with those that can; None where it can."""
    return None if name in DISPATCH_POLICIES else unknown("dispatch policy", name, DISPATCH_POLICIES)


def why_nothing_is_handed_out(key: str, name: str) -> str:
    """What to tell people where a key names a policy that is not there; empty where it is."""
    if (wrong := unusable_dispatch_policy(name)) is None:
        return ""
    return f"{key} names a policy that is not installed ({wrong}); no other one takes its place, and these jobs wait"
