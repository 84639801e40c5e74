"""The conformance suite of brokerage policies, ours and those of other packages: functions that raise AssertionError.

A policy must be pure, total, deterministic, read only the keys that its rules declare, never take a candidate that it skips, and
give each skip a reason. `check_policy(MyPolicy)` asks all of that with random questions (`policy_trials`); CHECKS has the parts
by name, for tests that run them one by one. Needs no database. What it cannot see: a clock that is read through other packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from broker_site.foundation.gdpconfig.keys import APP, KEYS
from broker_site.roof.conformance.policy_trials import Trial, trial
from broker_site.roof.conformance.purity import reaching, watched
from brokerage.rules.decision.declare import Filter, Policy, Relaxation, Weight
from brokerage.rules.decision.pipeline import decide, evidence, skip_of, skips
from brokerage.rules.decision.record import config_of, decode, encode, replay
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.columns import Columns

TRIALS = 200
"""Questions that each check asks."""

LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check_policy(policy: Policy, trials: int = TRIALS) -> None:
    """Ask everything of a policy; AssertionError at the first that does not hold, with the number of the question."""
    for check in CHECKS.values():
        check(policy, trials)


def declared(policy: Policy, _trials: int = TRIALS) -> None:
    """Everything has a name and a sentence, and the keys that the rules read are declared in the policy's components."""
    _hold(policy.name, f"{policy.__name__} has no name: declare it with @policy")
    _hold(policy.__doc__, f"{policy.name} has no docstring")
    for rule in _rules(policy):
        _hold(rule.doc.strip(), f"{_what(rule)} has no docstring")
    for criterion in policy.judged:
        _hold(LABEL.fullmatch(criterion.label), f"-{criterion.label} is no label: letters, digits and _ are expected")
        _hold(criterion.reason.strip(), f"-{criterion.label} has no sentence for who is skipped")
        _hold(criterion.kind in ("persistent", "temporary"), f"-{criterion.label} is of the unknown kind {criterion.kind!r}")
    places = {(app or APP, component) for app, _, component in (place.rpartition(":") for place in policy.components)}
    known = {key.name for key in KEYS if (key.app, key.component) in places}
    unknown = set(policy.keys) - known
    _hold(not unknown, f"{policy.name} reads {', '.join(sorted(unknown))}, which its components do not declare")


def reads_what_it_declares(policy: Policy, trials: int = TRIALS) -> None:
    """No rule looks at a key of the configuration that it does not name in its declaration."""
    for asked in _trials(policy, trials):
        ask, table = policy.prepare(asked.ask, OnlyKeys(asked, policy.name, policy.keys)), asked.table()
        with _quiet():
            for rule in _rules(policy):
                rule(ask, table, OnlyKeys(asked, _what(rule), rule.keys))


def answers_everything(policy: Policy, trials: int = TRIALS) -> None:
    """Total: every rule answers every question in the shape that it promises, also for an empty grid and odd numbers."""
    for asked in _trials(policy, trials):
        table, config = asked.table(), config_of(policy, asked.config)
        ask = _called(asked, f"prepare of {policy.name}", policy.prepare, asked.ask, config)
        _hold(isinstance(ask, Ask), f"prepare of {policy.name} gives {type(ask).__name__}, not an Ask ({asked})")
        for rule in policy.rules:
            _verdicts(rule, asked, ask, table, config)
        for factor in policy.weights:
            _shaped(_called(asked, _what(factor), factor, ask, table, config), "fiu", f"the factor of {_what(factor)}", asked)
        _called(asked, f"a decision of {policy.name}", decide, policy, asked.ask, table, config, asked.seed)


def touches_nothing(policy: Policy, trials: int = TRIALS) -> None:
    """Pure: neither files nor network, no clock, no random numbers of its own, and its input is as it was."""
    for rule in _rules(policy):
        called = rule.judge if isinstance(rule, Filter) else rule.factor
        found = sorted(set(reaching(called)))
        _hold(not found, f"{_what(rule)} uses {', '.join(found)}: a rule sees only what it is given")
    for asked in _trials(policy, trials):
        table, config = asked.table(), config_of(policy, asked.config)
        document, columns, before = asked.ask.to_document(), _values(table), dict(config)
        first = encode(decide(policy, asked.ask, table, config, asked.seed), policy)
        with watched() as touched:
            again = encode(decide(policy, asked.ask, table, config, asked.seed), policy)
        _hold(not touched, f"{policy.name} reaches out of the process: {', '.join(touched)} ({asked})")
        _hold(asked.ask.to_document() == document, f"{policy.name} changes the task that it is given ({asked})")
        _hold(_values(table) == columns, f"{policy.name} changes the table that it is given ({asked})")
        _hold(config == before, f"{policy.name} changes the configuration that it is given ({asked})")
        _hold(first == again, f"{policy.name} changes what is made of the table: asked again it decides otherwise ({asked})")


def _values(table: Columns) -> list[bytes]:
    return [getattr(table, column).tobytes() for column in table.kinds()]


def decides_the_same(policy: Policy, trials: int = TRIALS) -> None:
    """Deterministic: the same question and seed give the same bytes, on a table of its own and when replayed from the store."""
    for asked in _trials(policy, trials):
        config = config_of(policy, asked.config)
        one, other = (encode(decide(policy, asked.ask, asked.table(), config, asked.seed), policy) for _ in range(2))
        _hold(one == other, f"{policy.name} decides otherwise on the same question and seed ({asked})")
        again = replay(decode(one), policy, asked.ask, asked.table(), config)
        _hold(one == again, f"{policy.name} decides otherwise when its stored decision is replayed ({asked})")


def takes_none_that_it_skips(policy: Policy, trials: int = TRIALS) -> None:
    """Who is chosen fails no criterion and has a weight; who is not chosen has a first criterion, which it fails."""
    for asked in _trials(policy, trials):
        decision = decide(policy, asked.ask, asked.table(), config_of(policy, asked.config), asked.seed)
        failed, chosen = decision.failed(), [choice.row for choice in decision.chosen]
        _hold(len(set(chosen)) == len(chosen), f"{policy.name} takes a candidate twice ({asked})")
        for choice in decision.chosen:
            _hold(not failed[:, choice.row].any(), f"{policy.name} takes {choice.name}, which it skips ({asked})")
            _hold(np.isfinite(choice.weight), f"{policy.name} takes {choice.name} with the weight {choice.weight} ({asked})")
        for row in set(range(len(decision.first))) - set(chosen):
            first = decision.first[row]
            _hold(first >= 0, f"{policy.name} neither takes row {row} nor skips it ({asked})")
            _hold(failed[first, row], f"{policy.name} skips row {row} by a criterion that it passes ({asked})")
        _hold((decision.outcome == "assign") == bool(chosen), f"{policy.name} says {decision.outcome!r} of {chosen} ({asked})")


def gives_reasons(policy: Policy, trials: int = TRIALS) -> None:
    """Each skip, by the first criterion and by every other that fails, has a sentence in which every number is filled in."""
    for asked in _trials(policy, trials):
        table, config = asked.table(), config_of(policy, asked.config)
        decision = decide(policy, asked.ask, table, config, asked.seed)
        told = _called(asked, f"a reason of {policy.name}", skips, decision, policy, asked.ask, table, config)
        names = {choice.name for choice in decision.chosen}
        _hold(told.keys() == set(table.name.tolist()) - names, f"{policy.name} gives no reason for some that it skips ({asked})")
        found, failed = evidence(policy, asked.ask, table, config), decision.failed()
        for criterion, row in zip(*np.nonzero(failed), strict=True):
            label = f"the reason of -{policy.criteria[criterion].label}"
            skip = _called(asked, label, skip_of, found[criterion], int(row))
            _hold(skip.reason.strip(), f"{label} is empty ({asked})")
            _hold("{" not in skip.reason, f"{label} has numbers that are not filled in: {skip.reason} ({asked})")


CHECKS: Mapping[str, Callable[[Policy, int], None]] = {
    check.__name__: check
    for check in (
        declared,
        answers_everything,
        reads_what_it_declares,
        touches_nothing,
        decides_the_same,
        takes_none_that_it_skips,
        gives_reasons,
    )
}
"""Every check by its name."""


class OnlyKeys(Mapping[str, Any]):
    """A configuration that shows only the keys that `who` declares, their patterns (`A_<b>`) filled in."""

    def __init__(self, asked: Trial, who: str, keys: tuple[str, ...]) -> None:
        self._asked, self._who = asked, who
        self._patterns = [re.compile(".*".join(map(re.escape, re.split(r"<[^>]+>", key)))) for key in keys]
        self._keys = frozenset(keys)

    def __getitem__(self, name: str) -> Any:
        declared = name in self._keys or any(pattern.fullmatch(name) for pattern in self._patterns)
        _hold(declared, f"{self._who} reads the key {name}, which it does not declare ({self._asked})")
        return self._asked.config[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._asked.config if name in self._keys)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _trials(policy: Policy, count: int) -> Iterator[Trial]:
    return (trial(policy, number) for number in range(count))


def _hold(holds: object, why_not: str) -> None:
    """An `assert` that also holds where Python leaves those out."""
    if not holds:
        raise AssertionError(why_not)


def _rules(policy: Policy) -> Iterator[Filter | Weight]:
    yield from policy.rules
    yield from policy.weights


def _what(rule: Filter | Weight) -> str:
    return f"the {type(rule).__name__.lower()} {rule.name}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Division by zero as in a decision: it gives what is not a number, and no warning."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        yield


def _called(asked: Trial, what: str, function: Callable[..., Any], *given: Any) -> Any:
    """What a function gives; AssertionError with what it raised."""
    try:
        with _quiet():
            return function(*given)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise AssertionError(f"{what} raises {type(error).__name__}: {error} ({asked})") from error


def _verdicts(rule: Filter, asked: Trial, ask: Ask, table: Columns, config: Mapping[str, Any]) -> None:
    verdicts, numbers = _called(asked, _what(rule), rule, ask, table, config)
    steps = [verdicts]
    if isinstance(verdicts, Relaxation):
        steps = [verdicts.strict, *(_called(asked, _what(rule), laxer) for laxer in verdicts.laxer)]
    for step in steps:
        wanted = len(rule.criteria)
        _hold(len(step) == wanted, f"{_what(rule)} gives {len(step)} verdicts, {wanted} are declared ({asked})")
        for verdict in step:
            _shaped(verdict, "b", f"a verdict of {_what(rule)}", asked)
    for name, value in numbers.items():
        if isinstance(value, np.ndarray) and value.ndim:
            _hold(value.shape == (len(table),), f"{name} of {_what(rule)} has {len(value)} rows, not {len(table)} ({asked})")
    for criterion in rule.criteria:
        missing = [name for name in criterion.gap or () if name not in numbers]
        _hold(not missing, f"-{criterion.label} names {missing} in its gap, which {_what(rule)} does not give ({asked})")


def _shaped(value: Any, kinds: str, what: str, asked: Trial) -> None:
    """One value for all candidates, or one for each."""
    array = np.asarray(value)
    _hold(array.dtype.kind in kinds, f"{what} is of the type {array.dtype} ({asked})")
    _hold(array.shape in ((), (len(asked.rows),)), f"{what} has the shape {array.shape}, not ({len(asked.rows)},) ({asked})")
