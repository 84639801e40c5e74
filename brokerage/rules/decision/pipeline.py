"""One brokerage decision: snapshot columns in, verdicts and choice out. Pure, total, the same for the same input and seed.

Here: running a policy's rules over all candidates at once, and the skip of each candidate in words when somebody reads it. Not
here: the rules, the stored form (`brokerage.rules.decision.record`) and the story told from it
(`brokerage.rules.explain.explanation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from broker_site.foundation.kernel.dice import dice
from broker_site.foundation.kernel.verdict import Skip
from brokerage.rules.decision.declare import Criterion, Numbers, Policy, Relaxation
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns, Flags, Floats

Outcome = Literal["assign", "pending"]

Evidence = tuple[Criterion, Numbers]
"""A criterion with the numbers that it compared."""


class Choice(NamedTuple):
    """One chosen candidate: row, name, weight, and the factors of the weight in the policy's order."""

    row: int
    name: str
    weight: float
    factors: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PolicyDecision:
    """What a policy said of one ask.

    `first` has per candidate the index of the first criterion (in `policy.criteria`) that skips it, -1 for the chosen. `bits` has
    one row per criterion and one bit per candidate (np.packbits), set where it would skip. `closest` is the name nearest to
    passing when the outcome is pending, empty where there is no candidate at all. `wait_s`: seconds until the next try, 0 when
    assigned. `candidates` is a fingerprint of the names that the rows stand for. `eased` are the criteria (by index) that gave
    way, as they would have left nobody.
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
    eased: tuple[int, ...] = ()

    def failed(self) -> Flags:
        """The matrix of verdicts, criteria x candidates: True where the criterion would skip the candidate."""
        return np.unpackbits(self.bits, axis=1, count=len(self.first)).astype(np.bool_)


def decide(policy: Policy, ask: Ask, columns: Columns, config: Config, seed: str) -> PolicyDecision:
    """Evaluate every rule for every candidate and choose; `seed` feeds the dice of policies that draw."""
    ask = policy.prepare(ask, config)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        failed, numbers, eased = _judged(policy, ask, columns, config)
        factors = [factor(ask, columns, config) for factor in policy.weights]
        weights = _product(factors, len(columns))
    row = len(policy.judged)
    first = first_failed(failed[:row])
    passing = first < 0
    for kept in _heavy_enough(policy, ask, config, weights):
        if kept is not True and not kept.all():
            np.greater(passing, kept, out=failed[row])
            first[failed[row]] = row
            passing &= kept
        row += 1
    rows = policy.select(columns, weights, passing, config, partial(dice, policy.name, seed))
    passing[rows] = False
    failed[row] = passing
    np.copyto(first, row, where=passing)
    chosen = tuple(map(Choice, rows.tolist(), columns.name[rows].tolist(), weights[rows].tolist(), _factors_of(factors, rows)))
    return PolicyDecision(
        policy=policy.name,
        version=policy.version,
        seed=seed,
        outcome="assign" if chosen else "pending",
        chosen=chosen,
        first=first,
        bits=np.packbits(failed, axis=1),
        closest="" if chosen or not len(columns) else _closest(policy, columns, failed, numbers),
        wait_s=0.0 if chosen else float(config[policy.otherwise.key]),
        candidates=columns.fingerprint,
        eased=eased,
    )


def _closest(policy: Policy, columns: Columns, failed: Flags, numbers: list[Numbers]) -> str:
    """The candidate nearest to passing (decision B3), which a pending task is told first.

    The one with the fewest failed persistent criteria, then the smallest relative gap in the first failed one, then by name; of a
    task that names candidates one of these. The first failed one is the first persistent one where there is any, else the first
    at all. `numbers`: those of each rule; the criteria of the choice compare none. There is a candidate, and rows are in the
    order of names.
    """
    criteria = policy.criteria
    compared = [of_rule for rule, of_rule in zip(policy.rules, numbers, strict=True) for _ in rule.criteria]
    persistent = np.array([criterion.kind == "persistent" for criterion in criteria])
    lasting = failed[persistent].sum(axis=0)
    elsewhere = failed[np.array([criterion.chosen for criterion in criteria], dtype=np.bool_)].any(axis=0)
    meant = lasting if elsewhere.all() else np.where(elsewhere, len(criteria) + 1, lasting)
    nearest = np.flatnonzero(meant == meant.min())
    first = np.argmax(failed & persistent[:, None] if meant.min() else failed, axis=0)
    gaps = np.full(len(columns), np.inf)
    for i in set(first[nearest].tolist()):
        if i < len(compared) and (pair := criteria[i].gap) is not None:
            gap = _relative_gap(compared[i][pair[0]], compared[i][pair[1]], len(columns))
            gaps[first == i] = gap[first == i]
    name: str = columns.name[nearest[np.argmin(gaps[nearest])]].item()
    return name


def _relative_gap(need: Any, limit: Any, count: int) -> Floats:
    """How far what is needed is from what there is, in parts of the latter; infinite where that is 0."""
    needed = np.broadcast_to(np.asarray(need, dtype=np.float64), count)
    available = np.broadcast_to(np.asarray(limit, dtype=np.float64), count)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.abs(needed - available) / np.abs(available)
    return np.where(np.isfinite(gap), gap, np.inf)


def able(policy: Policy, ask: Ask, columns: Columns, config: Config) -> Flags:
    """Who passes everything but the late cuts: a hint, no decision."""
    return _passing(policy, ask, columns, config, policy.early)


def able_in_time(policy: Policy, ask: Ask, columns: Columns, config: Config) -> Flags:
    """Who may be able another time, without a change of the task, of what a queue offers, or of the configuration."""
    return _passing(policy, ask, columns, config, np.intersect1d(policy.early, policy.lasting))


def _passing(policy: Policy, ask: Ask, columns: Columns, config: Config, criteria: NDArray[np.intp]) -> Flags:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        failed = _judged(policy, policy.prepare(ask, config), columns, config)[0]
    return np.logical_not(failed[criteria].any(axis=0))


def _judged(policy: Policy, ask: Ask, columns: Columns, config: Config) -> tuple[Flags, list[Numbers], tuple[int, ...]]:
    """The matrix of verdicts with rows left for the choice, the numbers of each rule, and the criteria that gave way."""
    passed = np.ones((len(policy.criteria), len(columns)), dtype=np.bool_)
    numbers: list[Numbers] = []
    giving: list[tuple[int, Relaxation]] = []
    row = 0
    for rule in policy.rules:
        verdicts, compared = rule.judge(ask, columns, config)
        numbers.append(compared)
        if isinstance(verdicts, Relaxation):
            giving.append((row, verdicts))
            verdicts = verdicts.strict
        if not isinstance(verdicts, tuple):
            verdicts = (verdicts,)
        for verdict in verdicts:
            if verdict is not True:
                passed[row] = verdict
            row += 1
    eased = tuple(i for row, verdicts in giving for i in _give_way(policy, passed, row, verdicts))
    return np.logical_not(passed, out=passed), numbers, eased


def _give_way(policy: Policy, passed: Flags, row: int, verdicts: Relaxation) -> range:
    """Put the step that holds into the rows of its criteria from `row` on; these criteria, if it is not the strictest.

    The strictest stand there already.
    """
    rows = range(row, row + len(verdicts.strict))
    others = policy.opening[(policy.opening < rows.start) | (policy.opening >= rows.stop)]
    open_to = passed.take(others, axis=0).all(axis=0)
    if (open_to & passed[rows.start : rows.stop].all(axis=0)).any():
        return range(0)
    for laxer in verdicts.laxer:
        step = [np.broadcast_to(verdict, open_to.shape) for verdict in laxer()]
        if np.logical_and.reduce([open_to, *step]).any():
            passed[rows.start : rows.stop] = step
            return rows
    return range(0)


def _heavy_enough(policy: Policy, ask: Ask, config: Config, weights: Floats) -> list[Flags | Literal[True]]:
    """Whose weight can be computed; whose is not below the least, where the policy knows one."""
    finite = np.isfinite(weights)
    least = policy.select.least_weight(ask, config)
    return [finite, *((weights >= least if least > 0 else True,) if policy.select.least else ())]


def _factors_of(factors: list[Floats | float], rows: NDArray[np.intp]) -> Iterator[tuple[float, ...]]:
    """The factors of these candidates, one after the other."""
    columns = [factor[rows].tolist() if isinstance(factor, np.ndarray) else [float(factor)] * len(rows) for factor in factors]
    return zip(*columns, strict=True) if columns else iter([()] * len(rows))


def _product(factors: list[Floats | float], count: int) -> Floats:
    """The weight of every candidate."""
    weights: Floats | float = 1.0
    for factor in factors:
        weights = weights * factor
    return weights if isinstance(weights, np.ndarray) else np.full(count, weights)


def first_failed(failed: Flags) -> NDArray[np.int16]:
    """Per candidate the lowest criterion that skips it, -1 for none."""
    places, criterion_at = _places(len(failed))
    first: NDArray[np.int16] = criterion_at[np.multiply(failed.view(np.uint8), places).max(axis=0, initial=0)]
    return first


@lru_cache(maxsize=64)
def _places(count: int) -> tuple[NDArray[Any], NDArray[np.int16]]:
    """A place for each criterion, the larger the earlier it is, so that the largest place of a candidate tells its first one.

    And the criterion at each place, -1 at 0.
    """
    places = np.arange(count, 0, -1, dtype=np.uint8 if count < 256 else np.uint16)
    criterion_at = np.arange(count, -1, -1, dtype=np.int16)
    criterion_at[0] = -1
    return places[:, np.newaxis], criterion_at


def evidence(policy: Policy, ask: Ask, columns: Columns, config: Config) -> list[Evidence]:
    """Per criterion the numbers that it compared, made again for who reads a decision; also those made by the choice."""
    compared: list[Evidence] = []
    ask = policy.prepare(ask, config)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for rule in policy.rules:
            numbers = rule(ask, columns, config)[1]
            compared += [(criterion, numbers) for criterion in rule.criteria]
        factors = [np.broadcast_to(factor(ask, columns, config), len(columns)) for factor in policy.weights]
        weights = _product([*factors], len(columns))
    missing = [factor.missing for factor in policy.weights]
    of_candidates = zip(weights.tolist(), *factors, strict=True)
    what = np.array([_what_is_missing(missing, weight, of) for weight, *of in of_candidates]) if factors else ""
    of_choice = {"what": what, "weight": weights, "least": policy.select.least_weight(ask, config)}
    return compared + [(criterion, of_choice) for criterion in policy.criteria[len(policy.judged) :]]


def _what_is_missing(missing: list[str], weight: float, factors: list[float]) -> str:
    """Why a weight of these factors cannot be computed, empty where it can; each may be finite and their product not."""
    if isfinite(weight):
        return ""
    reasons = [why for why, factor in zip(missing, factors, strict=True) if not isfinite(factor)]
    return ", ".join(reasons) or "the product of the factors is not a number"


def skip_of(entry: Evidence, row: int) -> Skip:
    """The skip of one candidate by one criterion, its sentence with the numbers of that candidate."""
    criterion, numbers = entry
    values = {name: at(value, row) for name, value in numbers.items()}
    return Skip(f"-{criterion.label}", criterion.kind, criterion.reason.format(**values), values)


def skips(decision: PolicyDecision, policy: Policy, ask: Ask, columns: Columns, config: Config) -> dict[str, Skip]:
    """Every skipped candidate by name, with the first criterion that skipped it; formatted here, so only for who reads."""
    entries = evidence(policy, ask, columns, config)
    rows = enumerate(zip(columns.name.tolist(), decision.first.tolist(), strict=True))
    return {name: skip_of(entries[first], row) for row, (name, first) in rows if first >= 0}


def at(value: Any, row: int) -> Any:
    """The value for one candidate of what may be one value for all."""
    return value[row].item() if isinstance(value, np.ndarray) and value.ndim else value
