"""The story of a decision as plain data, which command line, REST and pages render: verdict, funnel, matrix, weights, why not.

Sentences and numbers are made here from the snapshot, the ask and the configuration that the decision was taken on; without the
snapshot, or after the policy has changed, what the record alone says is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

import numpy as np

from broker_site.kernel.verdict import Kind, Skip
from brokerage.rules.ask import Ask
from brokerage.rules.columns import Columns
from brokerage.rules.decision_record import Record
from brokerage.rules.declare import Config, Policy
from brokerage.rules.pipeline import Evidence, at, evidence, skip_of

PASSED, FIRST, FURTHER = ".", {"persistent": "P", "temporary": "T"}, {"persistent": "p", "temporary": "t"}
"""Symbols of the matrix: passed; the first criterion that skipped; further ones that would have."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One chosen candidate with its weight and the factors that made it."""

    name: str
    weight: float
    factors: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the funnel: how many this criterion was the first to skip, how many were left after it."""

    criterion: str
    kind: Kind
    skipped: int
    left: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """One skipped candidate with the first criterion that skipped it."""

    name: str
    criterion: str
    kind: Kind
    reason: str
    numbers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a decision came to and why. `matrix` has per candidate one symbol for each of `criteria`.

    `skipped`, `matrix` and `lacks` (everything that the closest candidate fails) are empty where `detailed` is false. `eased` are
    criteria that gave way, as they would have left nobody.
    """

    verdict: str
    policy: str
    outcome: str
    wait_s: float
    candidates: int
    chosen: tuple[Chosen, ...]
    funnel: tuple[Step, ...]
    closest: str
    detailed: bool = False
    lacks: tuple[Skipped, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    criteria: tuple[str, ...] = ()
    matrix: Mapping[str, str] | None = None
    eased: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Check:
    """What one criterion said of one candidate; the reason is empty where it passed."""

    criterion: str
    kind: Kind
    passed: bool
    reason: str
    numbers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Every verdict on one candidate, in the order of the policy; `first` is None where it was chosen."""

    name: str
    chosen: bool
    weight: float | None
    factors: Mapping[str, float | None]
    first: Skipped | None
    checks: tuple[Check, ...]

    def to_document(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self)


def explain(
    record: Record,
    policy: Policy | None,
    ask: Ask | None,
    columns: Columns | None,
    config: Config | None,
    decided_at: datetime | None = None,
) -> Explanation:
    """Tell a stored decision from what it was taken on; any of these may be gone. `decided_at` names the time of the next try."""
    told = _outline(record, columns.noun if columns is not None else "candidate", decided_at)
    if policy is None or ask is None or columns is None or config is None or not replayable(record, policy, columns):
        return told
    found = evidence(policy, ask, columns, config)
    failed = record.decision.failed()
    skipped = tuple(
        _skipped(name, skip_of(found[first], row))
        for row, (name, first) in enumerate(zip(columns.name.tolist(), record.decision.first.tolist(), strict=True))
        if first >= 0
    )
    lacks: tuple[Skipped, ...] = ()
    if told.closest:
        row = columns.index[told.closest]
        lacks = tuple(_skipped(told.closest, skip_of(found[i], row)) for i in np.flatnonzero(failed[:, row]).tolist())
    return replace(
        told,
        verdict=_verdict(record, columns.noun, decided_at, lacks),
        detailed=True,
        lacks=lacks,
        skipped=skipped,
        criteria=tuple(f"-{label}" for label in record.labels),
        matrix=_matrix(record, columns),
    )


def why_not(record: Record, policy: Policy, ask: Ask, columns: Columns, config: Config, name: str) -> WhyNot:
    """Every verdict on one candidate. KeyError if the snapshot does not have it, ValueError if the policy has changed since."""
    if not replayable(record, policy, columns):
        raise ValueError("the decision was taken by another version of the policy or on another snapshot")
    row = columns.index[name]
    found, failed = evidence(policy, ask, columns, config), record.decision.failed()[:, row].tolist()
    checks = tuple(_check(evident, row, not bad) for evident, bad in zip(found, failed, strict=True))
    first = int(record.decision.first[row])
    taken = policy.prepare(ask, config)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factors = {weight.name: at(weight(taken, columns, config), row) for weight in policy.weights}
    return WhyNot(
        name=name,
        chosen=first < 0,
        weight=_finite(found[-1][1]["weight"][row].item()),
        factors={factor: _finite(value) for factor, value in factors.items()},
        first=_skipped(name, skip_of(found[first], row)) if first >= 0 else None,
        checks=checks,
    )


def replayable(record: Record, policy: Policy, columns: Columns) -> bool:
    """Whether numbers can be made again: the same policy version, and rows that stand for the same candidates."""
    return (record.decision.version, record.decision.candidates) == (policy.version, columns.fingerprint)


def _outline(record: Record, noun: str, decided_at: datetime | None) -> Explanation:
    decision = record.decision
    return Explanation(
        verdict=_verdict(record, noun, decided_at, ()),
        policy=decision.policy,
        outcome=decision.outcome,
        wait_s=decision.wait_s,
        candidates=len(decision.first),
        chosen=tuple(
            Chosen(choice.name, choice.weight, dict(zip(record.factors, choice.factors, strict=True)))
            for choice in decision.chosen
        ),
        funnel=tuple(_funnel(record)),
        closest=decision.closest,
        eased=tuple(dict.fromkeys(f"-{record.labels[i]}" for i in decision.eased)),
    )


def _funnel(record: Record) -> list[Step]:
    counts = np.bincount(record.decision.first[record.decision.first >= 0], minlength=len(record.labels))
    left = len(record.decision.first)
    steps = []
    for label, kind, count in zip(record.labels, record.kinds, counts.tolist(), strict=True):
        left -= count
        if count:
            steps.append(Step(f"-{label}", kind, count, left))
    return steps


def _verdict(record: Record, noun: str, decided_at: datetime | None, lacks: tuple[Skipped, ...]) -> str:
    decision = record.decision
    count = len(decision.first)
    nouns = noun if count == 1 else f"{noun}s"
    if decision.outcome == "assign":
        best = decision.chosen[0]
        return f"{len(decision.chosen)} of {count} {nouns} taken; the best is {best.name} with the weight {best.weight:.4g}"
    when = f"in {_duration(decision.wait_s)}"
    if decided_at is not None:
        when = f"at {decided_at + timedelta(seconds=decision.wait_s):%H:%M:%S} UTC"
    if not count:
        return f"Pending: there is no {noun} at all; next try {when}"
    lasting = np.array([kind == "persistent" for kind in record.kinds])
    never = bool(decision.failed()[lasting].any(axis=0).all())
    passed = f"none of {count} {nouns} fits" if never else f"0 of {count} {nouns} passed"
    lack = f", {lacks[0].reason} ({', '.join(skip.criterion for skip in lacks)})" if lacks else ""
    return f"Pending: {passed}; the closest is {decision.closest}{lack}; next try {when}"


def _duration(seconds: float) -> str:
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _matrix(record: Record, columns: Columns) -> dict[str, str]:
    further = np.array([FURTHER[kind] for kind in record.kinds])
    symbols = np.where(record.decision.failed(), further[:, None], PASSED).T
    rows = ["".join(row) for row in symbols.tolist()]
    first = record.decision.first.tolist()
    return {
        name: row if i < 0 else f"{row[:i]}{FIRST[record.kinds[i]]}{row[i + 1 :]}"
        for name, row, i in zip(columns.name.tolist(), rows, first, strict=True)
    }


def _skipped(name: str, skip: Skip) -> Skipped:
    return Skipped(name, skip.criterion, skip.kind, skip.reason, _plain(skip.numbers))


def _check(found: Evidence, row: int, passed: bool) -> Check:
    criterion, numbers = found
    reason = "" if passed else skip_of(found, row).reason
    compared = _plain({name: at(value, row) for name, value in numbers.items()})
    return Check(f"-{criterion.label}", criterion.kind, passed, reason, compared)


def _plain(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _finite(value) for name, value in numbers.items()}


def _finite(value: Any) -> Any:
    """JSON has no name for what is not a number: null."""
    return None if isinstance(value, float) and not isfinite(value) else value
