"""The conformance suite of policies: all of ours pass it, and each fault that an author can make is found by the check for it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from broker_site.roof.conformance.policies import CHECKS
from brokerage.policies.analysis import Analysis
from brokerage.policies.generic import Generic
from brokerage.policies.nucleus import Nucleus
from brokerage.policies.production import Production
from brokerage.rules.decision.declare import Criterion, Filter, PendingFor, Policy, Weight
from brokerage.rules.facts.ask import Ask

OURS: list[Policy] = [Production, Analysis, Generic, Nucleus]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("policy", OURS, ids=[policy.name for policy in OURS])
def test_our_policies_conform(policy: Policy, check: str) -> None:
    CHECKS[check](policy, 120)


Judge = Callable[[Any, Any, Any], Any]


def with_filter(
    judge: Judge, reason: str = "it is so", label: str = "odd", keys: tuple[str, ...] = (), gap: Any = None, doc: str = "A rule."
) -> Policy:
    """The generic broker with one more filter."""
    odd = Filter("odd", (Criterion(label, reason, gap=gap),), keys, doc, judge)
    return type("Odd", (Generic,), {"filters": (*Generic.filters, odd), "name": "odd", "__doc__": "With a fault."})


def with_weight(factor: Judge) -> Policy:
    """The generic broker with another weight."""
    return type("Odd", (Generic,), {"weights": (Weight("odd", (), "A weight.", factor),), "name": "odd", "__doc__": "Odd."})


def reads_the_clock(_ask: Any, queues: Any, _config: Any) -> Any:
    return queues.running >= 0 if time.time() else True, {}


def asks_for_today(_ask: Any, _queues: Any, _config: Any) -> Any:
    return datetime.now(UTC).hour < 25, {}


def draws(_ask: Any, _queues: Any, _config: Any) -> Any:
    return random.random() >= 0, {}


def draws_by_numpy(_ask: Any, queues: Any, _config: Any) -> Any:
    return np.random.rand(len(queues)) >= 0, {}


def calls_one_that_draws(ask: Any, queues: Any, config: Any) -> Any:
    return draws(ask, queues, config)


def opens_a_file(_ask: Any, _queues: Any, _config: Any) -> Any:
    with open(__file__, "rb") as file:  # noqa: PTH123
        return bool(file), {}


def spoils_what_is_made_of_the_table(_ask: Any, queues: Any, _config: Any) -> Any:
    queues.busy[:] += 100
    return queues.busy < 150, {}


calls = [0]


def counts_its_calls(_ask: Any, queues: Any, _config: Any) -> Any:
    calls[0] += 1
    return queues.running >= calls[0] % 2, {}


def changes_its_configuration(_ask: Any, _queues: Any, config: Any) -> Any:
    config["BEST_GENERIC"] = 1
    return True, {}


@dataclass(frozen=True)
class TakesAll:
    """Takes every candidate, whoever passes."""

    keys: tuple[str, ...] = ()
    least: str = ""

    def least_weight(self, _ask: Ask, _config: Any) -> float:
        return 0.0

    def __call__(self, _columns: Any, weights: Any, _passing: Any, _config: Any, _dice: Any) -> Any:
        return np.arange(len(weights))


TAKES_ALL: Policy = type("Odd", (Generic,), {"select": TakesAll(), "name": "odd", "__doc__": "Takes all."})
NEEDS_TWO = with_filter(lambda _a, queues, _c: (queues.name != queues.name[1], {}))
NAMELESS: Policy = type("Odd", (Generic,), {"name": "", "__doc__": "Not declared."})
NO_SUCH_KEY: Policy = type("Odd", (Generic,), {"otherwise": PendingFor("NEVER"), "name": "odd", "__doc__": "Waits."})

FAULTS: list[tuple[str, Policy, str, str]] = [
    ("declared", NAMELESS, "declare it with @policy", "no name"),
    ("declared", with_filter(lambda *_: (True, {}), doc=""), "the filter odd has no docstring", "no docstring"),
    ("declared", with_filter(lambda *_: (True, {}), label="two words"), "-two words is no label", "bad label"),
    ("declared", with_filter(lambda *_: (True, {}), reason=" "), "no sentence", "no sentence"),
    ("declared", NO_SUCH_KEY, "reads NEVER, which its components do not declare", "key that is not there"),
    ("answers_everything", NEEDS_TWO, "the filter odd raises IndexError: .*trial 0", "fails on an empty grid"),
    ("answers_everything", with_filter(lambda *_: (np.ones(1, bool), {})), r"shape \(1,\), not \(0,\)", "one verdict for all"),
    ("answers_everything", with_filter(lambda _a, q, _c: (q.running, {})), "is of the type int64", "numbers as verdicts"),
    ("answers_everything", with_filter(lambda *_: ((True, True), {})), "gives 2 verdicts, 1 are declared", "too many verdicts"),
    ("answers_everything", with_filter(lambda *_: (True, {}), gap=("a", "b")), r"names \['a', 'b'\] in its gap", "unknown gap"),
    (
        "answers_everything",
        with_filter(lambda *_: (True, {"a": np.ones(7)})),
        "a of the filter odd has 7 rows",
        "rows of numbers",
    ),
    ("answers_everything", with_weight(lambda a, *_: 1 / a.priority), "the weight odd raises ZeroDivisionError", "divides by 0"),
    ("answers_everything", with_weight(lambda *_: "heavy"), "is of the type <U5", "text as weight"),
    (
        "reads_what_it_declares",
        with_filter(lambda _a, _q, config: (config["BEST_GENERIC"] > 0, {})),
        "the filter odd reads the key BEST_GENERIC, which it does not declare",
        "undeclared key",
    ),
    (
        "reads_what_it_declares",
        with_filter(lambda _a, _q, config: (config.get("NQUEUELIMITSITE_MC") is None, {}), keys=("NQUEUELIMITSITE",)),
        "NQUEUELIMITSITE_MC",
        "undeclared pattern",
    ),
    ("touches_nothing", with_filter(reads_the_clock), "uses time", "clock"),
    ("touches_nothing", with_filter(asks_for_today), "uses datetime.now", "today"),
    ("touches_nothing", with_filter(draws), "uses random", "random"),
    ("touches_nothing", with_filter(draws_by_numpy), "uses np.random", "numpy's random"),
    ("touches_nothing", with_filter(calls_one_that_draws), "uses random", "random in what it calls"),
    ("touches_nothing", with_filter(opens_a_file), "reaches out of the process: open", "file"),
    ("touches_nothing", with_filter(lambda *_: (Path.cwd() is not None, {})), "uses pathlib.Path", "path"),
    ("touches_nothing", with_filter(spoils_what_is_made_of_the_table), "changes what is made of the table", "made columns"),
    ("touches_nothing", with_filter(changes_its_configuration), "changes the configuration", "configuration"),
    ("decides_the_same", with_filter(counts_its_calls), "decides otherwise on the same question", "memory"),
    ("takes_none_that_it_skips", TAKES_ALL, "which it skips", "takes skipped"),
    ("gives_reasons", with_filter(lambda *_: (False, {}), reason="{missing} are missing"), "raises KeyError", "missing number"),
    ("gives_reasons", with_filter(lambda *_: (False, {}), reason="{{left}} is left"), "not filled in", "brackets"),
]


@pytest.mark.parametrize(("check", "policy", "says"), [fault[:3] for fault in FAULTS], ids=[fault[3] for fault in FAULTS])
def test_a_fault_is_found_by_the_check_for_it(check: str, policy: Policy, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        CHECKS[check](policy, 60)
