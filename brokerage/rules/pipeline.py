"""One brokerage decision: snapshot columns in, verdicts and choice out. Pure, total, the same for the same input and seed.

Here: running a policy's rules over all candidates at once, and the skip of each candidate in words when somebody reads it. Not
here: the rules, the stored form (`brokerage.rules.decision_record`) and the story told from it (`brokerage.rules.explain`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from broker_site.kernel.dice import dice
from broker_site.kernel.verdict import Skip
from brokerage.rules.ask import Ask
from brokerage.rules.closest import closest
from brokerage.rules.columns import Columns, Flags, Floats
from brokerage.rules.declare import Config, Criterion, Numbers, Policy

Outcome = Literal["assign", "pending"]

Evidence = tuple[Criterion, Numbers]
"""A criterion with the numbers that it compared."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One chosen candidate: row, name, weight, and the factors of the weight in the policy's order."""

    row: int
    name: str
    weight: float
    factors: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What a policy said of one ask.

    `first` has per candidate the index of the first criterion (in `policy.criteria`) that skips it, -1 for the chosen. `bits` has
    one row per criterion and one bit per candidate (np.packbits), set where it would skip. `closest` is the name nearest to
    passing when the outcome is pending, empty where there is no candidate at all. `wait_s`: seconds until the next try, 0 when
    assigned. `candidates` is a fingerprint of the names that the rows stand for.
    """

    policy: str
    version: str
    seed: str
    outcome: Outcome
    chosen: tuple[Choice, ...]
    first: NDArray[np.int16]
    bits: NDArray[np.uint8]
    closest: str
    wait_s: float
    candidates: str

    def failed(self) -> Flags:
        """The matrix of verdicts, criteria x candidates: True where the criterion would skip the candidate."""
        return np.unpackbits(self.bits, axis=1, count=len(self.first)).astype(np.bool_)


def decide(policy: Policy, ask: Ask, columns: Columns, config: Config, seed: str) -> Decision:
    """Evaluate every rule for every candidate and choose; `seed` feeds the dice of policies that draw."""
    failed = np.zeros((len(policy.criteria), len(columns)), dtype=np.bool_)
    numbers: list[Numbers] = []
    row = 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for rule in policy.rules:
            passes, compared = rule.judge(ask, columns, config)
            for verdicts in passes:
                if verdicts is not True:
                    np.logical_not(verdicts, out=failed[row])
                numbers.append(compared)
                row += 1
        factors = _factors(policy, ask, columns, config)
        weights = factors.prod(axis=0)
    passing = np.logical_not(failed[:row].any(axis=0))
    np.logical_and(passing, ~np.isfinite(weights), out=failed[row])
    rows = policy.select(weights, passing & ~failed[row], config, partial(dice, policy.name, seed))
    failed[row + 1] = passing & ~failed[row]
    failed[row + 1, rows] = False
    chosen = tuple(
        Choice(i, name, weight, tuple(factors[:, i].tolist()))
        for i, name, weight in zip(rows.tolist(), columns.name[rows].tolist(), weights[rows].tolist(), strict=True)
    )
    return Decision(
        policy=policy.name,
        version=policy.version,
        seed=seed,
        outcome="assign" if chosen else "pending",
        chosen=chosen,
        first=first_failed(failed),
        bits=np.packbits(failed, axis=1),
        closest="" if chosen or not len(columns) else columns.name[closest(policy.criteria, failed, numbers)].item(),
        wait_s=0.0 if chosen else float(config[policy.otherwise.key]),
        candidates=columns.fingerprint,
    )


def _factors(policy: Policy, ask: Ask, columns: Columns, config: Config) -> Floats:
    factors = np.empty((len(policy.weights), len(columns)), dtype=np.float64)
    for i, factor in enumerate(policy.weights):
        factors[i] = factor(ask, columns, config)
    return factors


def first_failed(failed: Flags) -> NDArray[np.int16]:
    """Per candidate the lowest criterion that skips it, -1 for none."""
    skipping = np.flatnonzero(failed.any(axis=1)).astype(np.int16)
    if not len(skipping):
        return np.full(failed.shape[1], -1, dtype=np.int16)
    some = failed[skipping]
    first: NDArray[np.int16] = skipping[some.argmax(axis=0)]
    first[~some.any(axis=0)] = -1
    return first


def evidence(policy: Policy, ask: Ask, columns: Columns, config: Config) -> list[Evidence]:
    """Per criterion the numbers that it compared, made again for who reads a decision.

    Also those of the two made by the choice.
    """
    found: list[Evidence] = []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for rule in policy.rules:
            numbers = rule(ask, columns, config)[1]
            found += [(criterion, numbers) for criterion in rule.criteria]
        factors = _factors(policy, ask, columns, config)
        weights = factors.prod(axis=0)
    names = [factor.name for factor in policy.weights]
    what = np.array([", ".join(n for n, f in zip(names, column, strict=True) if not np.isfinite(f)) for column in factors.T])
    found += [(policy.criteria[-2], {"what": what}), (policy.criteria[-1], {"weight": weights})]
    return found


def skip_of(found: Evidence, row: int) -> Skip:
    """The skip of one candidate by one criterion, its sentence with the numbers of that candidate."""
    criterion, numbers = found
    values = {name: at(value, row) for name, value in numbers.items()}
    return Skip(f"-{criterion.label}", criterion.kind, criterion.reason.format(**values), values)


def skips(decision: Decision, policy: Policy, ask: Ask, columns: Columns, config: Config) -> dict[str, Skip]:
    """Every skipped candidate by name, with the first criterion that skipped it; formatted here, so only for who reads."""
    return dict(_skips(decision, evidence(policy, ask, columns, config), columns))


def _skips(decision: Decision, found: list[Evidence], columns: Columns) -> Iterator[tuple[str, Skip]]:
    for row, (name, first) in enumerate(zip(columns.name.tolist(), decision.first.tolist(), strict=True)):
        if first >= 0:
            yield name, skip_of(found[first], row)


def at(value: Any, row: int) -> Any:
    """The value for one candidate of what may be one value for all."""
    return value[row].item() if isinstance(value, np.ndarray) and value.ndim else value
