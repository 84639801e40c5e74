"""The conformance suite of brokerage policies, ours and those of other packages: functions that raise AssertionError.

A policy must be pure, total, deterministic, read only the keys that its rules declare, never take a candidate that it skips, and
give each skip a reason. CHECKS has a function for each, which asks random questions (`policy_trials`). Needs no database. What it
cannot see: a clock that is read through other packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from broker_site.roof.conformance.policy_trials import Trial, known_keys, trial
from broker_site.roof.conformance.purity import reaching, watched
from brokerage.rules.decision.declare import Filter, Policy, Relaxation, Weight
from brokerage.rules.decision.pipeline import decide, evidence, skip_of, skips
from brokerage.rules.decision.record import config_of, decode, encode, replay
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.columns import Columns

TRIALS = 200
"""Questions that each check asks."""

LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def declared(policy: Policy, _trials: int = TRIALS) -> None:
    """Everything has a name and a sentence, and the keys that the rules read are declared in the policy's components."""
    _hold(policy.name, f"{policy.__name__} has no name: declare it with @policy")
    _hold(policy.__doc__, f"{policy.name} has no docstring")
    for rule in _rules(policy):
        _hold(rule.doc.strip(), f"{_rule_name(rule)} has no docstring")
    for criterion in policy.judged:
        _hold(LABEL.fullmatch(criterion.label), f"-{criterion.label} is no label: letters, digits and _ are expected")
        _hold(criterion.reason.strip(), f"-{criterion.label} has no sentence for who is skipped")
        _hold(criterion.kind in ("persistent", "temporary"), f"-{criterion.label} is of the unknown kind {criterion.kind!r}")
    unknown = set(policy.keys) - {key.name for key in known_keys(policy)}
    _hold(not unknown, f"{policy.name} reads {', '.join(sorted(unknown))}, which its components do not declare")


def reads_what_it_declares(policy: Policy, trials: int = TRIALS) -> None:
    """No rule looks at a key of the configuration that it does not name in its declaration."""
    for question in _trials(policy, trials):
        ask, table = policy.prepare(question.ask, OnlyKeys(question, policy.name, policy.keys)), question.table()
        with _quiet():
            for rule in _rules(policy):
                rule(ask, table, OnlyKeys(question, _rule_name(rule), rule.keys))


def answers_everything(policy: Policy, trials: int = TRIALS) -> None:
    """Total: every rule answers every question in the shape that it promises, also for an empty grid and odd numbers."""
    for question in _trials(policy, trials):
        table, config = question.table(), config_of(policy, question.config)
        ask = _called(question, f"prepare of {policy.name}", policy.prepare, question.ask, config)
        _hold(isinstance(ask, Ask), f"prepare of {policy.name} gives {type(ask).__name__}, not an Ask ({question})")
        for rule in policy.rules:
            _verdicts(rule, question, ask, table, config)
        for factor in policy.weights:
            _shaped(
                _called(question, _rule_name(factor), factor, ask, table, config),
                "fiu",
                f"the factor of {_rule_name(factor)}",
                question,
            )
        _called(question, f"a decision of {policy.name}", decide, policy, question.ask, table, config, question.seed)


def touches_nothing(policy: Policy, trials: int = TRIALS) -> None:
    """Pure: neither files nor network, no clock, no random numbers of its own, and its input is as it was."""
    for rule in _rules(policy):
        outside = reaching(rule.judge if isinstance(rule, Filter) else rule.factor)
        _hold(not outside, f"{_rule_name(rule)} uses {', '.join(outside)}: a rule sees only what it is given")
    for question in _trials(policy, trials):
        table, config = question.table(), config_of(policy, question.config)
        document, columns, before = question.ask.to_document(), _values(table), dict(config)
        first = encode(decide(policy, question.ask, table, config, question.seed), policy)
        with watched() as touched:
            again = encode(decide(policy, question.ask, table, config, question.seed), policy)
        _hold(not touched, f"{policy.name} reaches out of the process: {', '.join(touched)} ({question})")
        _hold(question.ask.to_document() == document, f"{policy.name} changes the task that it is given ({question})")
        _hold(_values(table) == columns, f"{policy.name} changes the table that it is given ({question})")
        _hold(config == before, f"{policy.name} changes the configuration that it is given ({question})")
        _hold(first == again, f"{policy.name} changes what is made of the table: asked again it decides otherwise ({question})")


def _values(table: Columns) -> list[bytes]:
    return [getattr(table, column).tobytes() for column in table.kinds()]


def decides_the_same(policy: Policy, trials: int = TRIALS) -> None:
    """Deterministic: the same question and seed give the same bytes, on a table of its own and when replayed from the store."""
    for question in _trials(policy, trials):
        config = config_of(policy, question.config)
        one, other = (encode(decide(policy, question.ask, question.table(), config, question.seed), policy) for _ in range(2))
        _hold(one == other, f"{policy.name} decides otherwise on the same question and seed ({question})")
        again = replay(decode(one), policy, question.ask, question.table(), config)
        _hold(one == again, f"{policy.name} decides otherwise when its stored decision is replayed ({question})")


def takes_none_that_it_skips(policy: Policy, trials: int = TRIALS) -> None:
    """Who is chosen fails no criterion and has a weight; who is not chosen has a first criterion, which it fails."""
    for question in _trials(policy, trials):
        decision = decide(policy, question.ask, question.table(), config_of(policy, question.config), question.seed)
        failed, chosen = decision.failed(), [choice.row for choice in decision.chosen]
        _hold(len(set(chosen)) == len(chosen), f"{policy.name} takes a candidate twice ({question})")
        for choice in decision.chosen:
            _hold(not failed[:, choice.row].any(), f"{policy.name} takes {choice.name}, which it skips ({question})")
            _hold(np.isfinite(choice.weight), f"{policy.name} takes {choice.name} with the weight {choice.weight} ({question})")
        for row in set(range(len(decision.first))) - set(chosen):
            first = decision.first[row]
            _hold(first >= 0, f"{policy.name} neither takes row {row} nor skips it ({question})")
            _hold(failed[first, row], f"{policy.name} skips row {row} by a criterion that it passes ({question})")
        _hold((decision.outcome == "assign") == bool(chosen), f"{policy.name} says {decision.outcome!r} of {chosen} ({question})")


def gives_reasons(policy: Policy, trials: int = TRIALS) -> None:
    """Each skip, by the first criterion and by every other that fails, has a sentence in which every number is filled in."""
    for question in _trials(policy, trials):
        table, config = question.table(), config_of(policy, question.config)
        decision = decide(policy, question.ask, table, config, question.seed)
        reasons = _called(question, f"a reason of {policy.name}", skips, decision, policy, question.ask, table, config)
        names = {choice.name for choice in decision.chosen}
        _hold(
            reasons.keys() == set(table.name.tolist()) - names,
            f"{policy.name} gives no reason for some that it skips ({question})",
        )
        numbers, failed = evidence(policy, question.ask, table, config), decision.failed()
        for criterion, row in zip(*np.nonzero(failed), strict=True):
            label = f"the reason of -{policy.criteria[criterion].label}"
            skip = _called(question, label, skip_of, numbers[criterion], int(row))
            _hold(skip.reason.strip(), f"{label} is empty ({question})")
            _hold("{" not in skip.reason, f"{label} has numbers that are not filled in: {skip.reason} ({question})")


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

    def __init__(self, question: Trial, who: str, keys: tuple[str, ...]) -> None:
        self._question, self._who = question, who
        self._patterns = [re.compile(".*".join(map(re.escape, re.split(r"<[^>]+>", key)))) for key in keys]
        self._keys = frozenset(keys)

    def __getitem__(self, name: str) -> Any:
        declared = name in self._keys or any(pattern.fullmatch(name) for pattern in self._patterns)
        _hold(declared, f"{self._who} reads the key {name}, which it does not declare ({self._question})")
        return self._question.config[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._question.config if name in self._keys)

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


def _rule_name(rule: Filter | Weight) -> str:
    return f"the {type(rule).__name__.lower()} {rule.name}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Division by zero as in a decision: it gives what is not a number, and no warning."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        yield


def _called(question: Trial, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives; AssertionError with what it raised."""
    try:
        with _quiet():
            return function(*arguments)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise AssertionError(f"{what} raises {type(error).__name__}: {error} ({question})") from error


def _verdicts(rule: Filter, question: Trial, ask: Ask, table: Columns, config: Mapping[str, Any]) -> None:
    verdicts, numbers = _called(question, _rule_name(rule), rule, ask, table, config)
    steps = [verdicts]
    if isinstance(verdicts, Relaxation):
        steps = [verdicts.strict, *(_called(question, _rule_name(rule), laxer) for laxer in verdicts.laxer)]
    for step in steps:
        wanted = len(rule.criteria)
        _hold(len(step) == wanted, f"{_rule_name(rule)} gives {len(step)} verdicts, {wanted} are declared ({question})")
        for verdict in step:
            _shaped(verdict, "b", f"a verdict of {_rule_name(rule)}", question)
    for name, value in numbers.items():
        if isinstance(value, np.ndarray) and value.ndim:
            _hold(
                value.shape == (len(table),), f"{name} of {_rule_name(rule)} has {len(value)} rows, not {len(table)} ({question})"
            )
    for criterion in rule.criteria:
        missing = [name for name in criterion.gap or () if name not in numbers]
        _hold(not missing, f"-{criterion.label} names {missing} in its gap, which {_rule_name(rule)} does not give ({question})")


def _shaped(value: Any, kinds: str, what: str, question: Trial) -> None:
    """One value for all candidates, or one for each."""
    array = np.asarray(value)
    _hold(array.dtype.kind in kinds, f"{what} is of the type {array.dtype} ({question})")
    _hold(
        array.shape in ((), (len(question.rows),)),
        f"{what} has the shape {array.shape}, not ({len(question.rows)},) ({question})",
    )
