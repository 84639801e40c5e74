"""The conformance suite of dispatch policies, ours and those of other packages: functions that raise AssertionError.

A policy serves every task queue that suits a pilot and no other, each once; the same dice give the same order; it sees only what
it is given; what jobs it names are there. CHECKS has a function for each of these, which asks random questions. No database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import NamedTuple

from broker_site.foundation.kernel.dice import dice as dice_of
from broker_site.roof.conformance.purity import reaching, watched
from brokerage.rules.dispatch.dispatch_policy import DispatchPolicy, JobWindow, Turn
from brokerage.rules.dispatch.requirement import Requirement, Resource
from brokerage.rules.dispatch.waiting_list import Unit, WaitingList, WaitingQueue

TRIALS = 200
"""Questions that each check asks."""
OPTIONS: Mapping[str, object] = {"HIGHEST_CPU_FIRST": True, "PROPORTIONAL_CHOICE": False}
CPU_TIMES = (0, 1, 60, 499, 500, 501, 5000, 50_000, 300_000, 2_000_000)


class DispatchTrial(NamedTuple):
    """One question: what waits, what the pilot offers, where units stand, how many jobs wait with each user priority."""

    waiting: tuple[WaitingQueue, ...]
    resource: Resource
    places: Mapping[Unit, float]
    priorities: Mapping[int, Mapping[float, int]]
    seed: int

    def turn(self) -> Turn:
        """What the policy may know besides the task queues, with fresh dice."""
        return Turn(lambda unit: self.places.get(unit, 1.0), dice_of(self.seed), OPTIONS)

    def order(self, policy: DispatchPolicy) -> list[WaitingQueue]:
        """The task queues as the policy serves them."""
        return list(policy.order(WaitingList(self.waiting).fitting(self.resource), self.turn()))

    def window(self, policy: DispatchPolicy, waiting: WaitingQueue) -> JobWindow:
        """Which jobs of a task queue it serves."""
        return policy.job_window(waiting, self.turn(), lambda id_: self.priorities[id_])


def dispatch_trial(number: int) -> DispatchTrial:
    """The question of this number."""
    dice = dice_of(number)
    units = [Unit("vo", f"share {n}") for n in range(dice.randint(1, 4))]
    waiting = tuple(_waiting(dice, n, units) for n in range(dice.choice((0, 1, 2, 5, 30))))
    resource = Resource("Q", dice.choice((1, 4, 8)), dice.choice((0, 2000, 4000)), tags=frozenset(dice.sample("abc", 2)))
    places = {unit: dice.choice((0.0, 0.25, 0.5)) for unit in units}
    priorities = {w.id: {float(w.priority - n): dice.randint(1, 30) for n in range(dice.randint(1, 3))} for w in waiting}
    return DispatchTrial(waiting, resource, places, priorities, number)


def _waiting(dice: Random, n: int, units: list[Unit]) -> WaitingQueue:
    need = Requirement(
        "Q", dice.choice((1, 4, 8)), dice.choice((0, 1000, 3000)), vo="vo", cpu_time_s=dice.choice(CPU_TIMES),
        owner=dice.choice("uv"), tags=frozenset(dice.sample("abc", dice.randint(0, 2))),
    )  # fmt: skip
    weight = dice.choice((0.001, 1.0, 1000.0))
    return WaitingQueue(n + 1, need, dice.randint(0, 10), dice.randint(1, 10**6), dice.choice(units), weight=weight)


def declared(policy: DispatchPolicy, _trials: int = TRIALS) -> None:
    """It has a name of letters, digits and `-`, and a sentence."""
    _hold(policy.name.replace("-", "").replace("_", "").isalnum(), f"{policy.name!r} is no name of a policy")
    _hold((type(policy).__doc__ or "").strip(), f"the dispatch policy {policy.name} has no docstring")


def serves_what_suits(policy: DispatchPolicy, trials: int = TRIALS) -> None:
    """Each task queue that suits the pilot comes once, however low, and no other."""
    for question in _trials(trials):
        suits = {waiting.id for waiting in WaitingList(question.waiting).fitting(question.resource)}
        order = [waiting.id for waiting in _order(policy, question)]
        _hold(len(order) == len(set(order)), f"{policy.name} serves a task queue twice ({question})")
        _hold(set(order) <= suits, f"{policy.name} serves a task queue that does not suit the pilot ({question})")
        _hold(set(order) == suits, f"{policy.name} leaves out a task queue that suits the pilot: it would starve ({question})")


def orders_the_same(policy: DispatchPolicy, trials: int = TRIALS) -> None:
    """The same dice give the same order and the same jobs."""
    for question in _trials(trials):
        order = _order(policy, question)
        _hold(order == _order(policy, question), f"{policy.name} orders otherwise with the same dice ({question})")
        for waiting in order[:3]:
            first, again = question.window(policy, waiting), question.window(policy, waiting)
            _hold(first == again, f"{policy.name} takes other jobs with the same dice ({question})")


def touches_nothing(policy: DispatchPolicy, trials: int = TRIALS) -> None:
    """Pure: neither files nor network, no clock, no random numbers but the dice that it is given."""
    for method in (policy.order, policy.job_window, policy.cpu_class):
        outside = reaching(getattr(method, "__func__", method))
        _hold(not outside, f"{policy.name} uses {', '.join(outside)}: a policy sees only what it is given")
    for question in _trials(trials):
        _order(policy, question)
        with watched() as touched:
            _order(policy, question)
        _hold(not touched, f"{policy.name} reaches out of the process: {', '.join(touched)} ({question})")


def names_jobs_that_wait(policy: DispatchPolicy, trials: int = TRIALS) -> None:
    """Of a task queue it serves jobs with a user priority that some have, or the first one."""
    for question in _trials(trials):
        for waiting in question.waiting:
            window = question.window(policy, waiting)
            there = not window.size or window.priority in question.priorities[waiting.id]
            _hold(window.size >= 0 and there, f"{policy.name} serves jobs that are not there: {window} ({question})")


def classes_rise(policy: DispatchPolicy, _trials: int = TRIALS) -> None:
    """A longer job is in no shorter class of CPU time, and what is not known stays 0."""
    classes = [policy.cpu_class(seconds) for seconds in CPU_TIMES]
    _hold(classes[0] == 0, f"{policy.name} gives a time that is not known the class {classes[0]}")
    _hold(classes == sorted(classes), f"{policy.name} has falling classes: {dict(zip(CPU_TIMES, classes, strict=True))}")


CHECKS: Mapping[str, Callable[[DispatchPolicy, int], None]] = {
    check.__name__: check
    for check in (declared, serves_what_suits, orders_the_same, touches_nothing, names_jobs_that_wait, classes_rise)
}
"""Every check by its name."""


def _trials(count: int) -> Iterator[DispatchTrial]:
    return map(dispatch_trial, range(count))


def _order(policy: DispatchPolicy, question: DispatchTrial) -> list[WaitingQueue]:
    """The order; AssertionError with what was raised instead."""
    try:
        return question.order(policy)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise AssertionError(f"{policy.name} raises {type(error).__name__}: {error} ({question})") from error


def _hold(holds: object, why_not: str) -> None:
    """An `assert` that also holds where Python leaves those out."""
    if not holds:
        raise AssertionError(why_not)
