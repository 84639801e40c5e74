"""Why one candidate was chosen or not: every criterion with its numbers, what each depends on, and the weight it has.

Here: one candidate of one decision as plain data. Not here: the decision as a whole (`explain`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from broker_site.foundation.kernel.verdict import Kind
from brokerage.rules.decision.declare import Filter, Policy
from brokerage.rules.decision.pipeline import Evidence, at, evidence, skip_of
from brokerage.rules.decision.record import Record
from brokerage.rules.explain.explanation import SkippedCandidate, about, finite, plain, replayable, skipped_of
from brokerage.rules.explain.remedies import FailedCheck, Remedy, remedies
from brokerage.rules.explain.rule_inputs import RuleInputs, rule_inputs
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns


@dataclass(frozen=True, slots=True)
class Check:
    """What one criterion said of one candidate; the reason is empty where it passed.

    `about`: what the rule asks, in a sentence. `need` and `limit`: the two numbers that decide, where the criterion names them.
    `depends_on`: what would change the verdict, the most telling first; empty where it passed.
    """

    criterion: str
    kind: Kind
    passed: bool
    reason: str
    numbers: Mapping[str, Any]
    about: str = ""
    need: float | None = None
    limit: float | None = None
    depends_on: tuple[Remedy, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Every verdict on one candidate, in the order of the policy; `first` is None where it was chosen.

    `weight` is the one that it has, or would have had if nothing had skipped it; None where it cannot be computed.
    """

    name: str
    chosen: bool
    weight: float | None
    factors: Mapping[str, float | None]
    first: SkippedCandidate | None
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """What the candidate fails, in the order of the policy."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def passed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.passed)

    def to_document(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self)


def candidates_named(columns: Columns, name: str) -> tuple[str, ...]:
    """The candidate of this name, or all parts of the unified queue of this name; none where there are none."""
    if name in columns.index:
        return (name,)
    unified = getattr(columns, "unified_name", None)
    return () if unified is None or not name else tuple(columns.name[unified == name].tolist())


def why_not(record: Record, policy: Policy, ask: Ask, columns: Columns, config: Config, name: str) -> WhyNot:
    """Every verdict on one candidate. KeyError if the snapshot does not have it, ValueError if the policy has changed since."""
    if not replayable(record, policy, columns):
        raise ValueError("the decision was taken by another version of the policy or on another snapshot")
    row = columns.index[name]
    entries, failed = evidence(policy, ask, columns, config), record.decision.failed()[:, row].tolist()
    prepared = policy.prepare(ask, config)
    rules: list[Filter | None] = [rule for rule in policy.rules for _ in rule.criteria]
    rules += [None] * (len(entries) - len(rules))
    inputs: dict[str, RuleInputs] = {}
    checks = []
    for entry, bad, rule in zip(entries, failed, rules, strict=True):
        check = _check(entry, row, not bad, policy)
        if bad and rule is not None:
            if rule.name not in inputs:
                inputs[rule.name] = rule_inputs(rule, prepared, columns, config)
            failed_check = FailedCheck(rule, entry[0], prepared, columns, config, row, check.numbers)
            check = replace(check, depends_on=remedies(failed_check, inputs[rule.name]))
        checks.append(check)
    first = int(record.decision.first[row])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factors = {weight.name: at(weight(prepared, columns, config), row) for weight in policy.weights}
    return WhyNot(
        name=name,
        chosen=first < 0,
        weight=finite(entries[-1][1]["weight"][row].item()),
        factors={factor: finite(value) for factor, value in factors.items()},
        first=skipped_of(name, entries[first], row) if first >= 0 else None,
        checks=tuple(checks),
    )


def _check(entry: Evidence, row: int, passed: bool, policy: Policy) -> Check:
    criterion, numbers = entry
    reason = "" if passed else skip_of(entry, row).reason
    # `what` says why a weight cannot be computed, also where it can.
    compared = plain({name: at(value, row) for name, value in numbers.items() if name != "what" or not passed})
    need, limit = (compared.get(name) for name in criterion.gap or ("", ""))
    label = f"-{criterion.label}"
    return Check(label, criterion.kind, passed, reason, compared, about(policy, criterion), _number(need), _number(limit))


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
