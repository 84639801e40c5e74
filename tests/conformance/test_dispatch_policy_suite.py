"""The conformance suite of dispatch policies: ours pass it, and each fault that an author can make is found by its check."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from broker_site.roof.conformance.dispatch_policies import CHECKS
from brokerage.rules.dispatch.dispatch_policy import DISPATCH_POLICIES, DispatchPolicy, JobWindow, Turn
from brokerage.rules.dispatch.policies import Panda
from brokerage.rules.dispatch.waiting_list import Fitting, WaitingQueue


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", ["dirac", "panda"])
def test_our_policies_conform(name: str, check: str) -> None:
    CHECKS[check](DISPATCH_POLICIES[name], 100)


class Documented(Panda):
    """One that an author changes."""

    name = "planted"


def planted(order: Callable[[Fitting, Turn], Iterator[WaitingQueue]]) -> DispatchPolicy:
    """A policy with another order."""

    class Planted(Documented):
        """One that an author changed."""

    Planted.order = lambda self, fitting, turn: order(fitting, turn)  # type: ignore[method-assign]
    return Planted()


def ours(fitting: Fitting, turn: Turn) -> list[WaitingQueue]:
    return list(Panda().order(fitting, turn))


class NoSuchJobs(Documented):
    """Names a priority that nobody has."""

    def job_window(self, waiting: WaitingQueue, turn: Turn, priorities: Callable[[int], Mapping[float, int]]) -> JobWindow:
        return JobWindow(-77, 10)


class FallingClasses(Documented):
    """The longer, the shorter."""

    def cpu_class(self, cpu_time_s: int) -> int:
        return -cpu_time_s


class ReadsTheClock(Documented):
    """Otherwise each second."""

    def order(self, fitting: Fitting, turn: Turn) -> Iterator[WaitingQueue]:
        return iter(ours(fitting, turn) if time.time() else [])


class WithoutSentence(Documented):
    name = "no name of a policy!"


def rolled(fitting: Fitting, turn: Turn) -> Iterator[WaitingQueue]:
    return iter(random.sample(some := ours(fitting, turn), len(some)))


def opened(fitting: Fitting, turn: Turn) -> Iterator[WaitingQueue]:
    Path(__file__).read_bytes()
    return iter(ours(fitting, turn))


@pytest.mark.parametrize(
    ("policy", "check", "told"),
    [
        (planted(lambda f, t: iter(ours(f, t)[:1])), "serves_what_suits", "leaves out"),
        (planted(lambda f, t: iter(ours(f, t) * 2)), "serves_what_suits", "twice"),
        (planted(lambda f, t: iter([row for row in f._reading.at if row])), "serves_what_suits", "does not suit"),
        (planted(lambda f, t: iter([1 // 0])), "serves_what_suits", "raises ZeroDivisionError"),  # type: ignore[list-item]
        (planted(rolled), "orders_the_same", "otherwise"),
        (planted(opened), "touches_nothing", "reaches out"),
        (ReadsTheClock(), "touches_nothing", "uses time"),
        (NoSuchJobs(), "names_jobs_that_wait", "not there"),
        (FallingClasses(), "classes_rise", "falling"),
        (WithoutSentence(), "declared", "no name"),
    ],
)
def test_each_fault_is_found(policy: DispatchPolicy, check: str, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        CHECKS[check](policy, 100)
