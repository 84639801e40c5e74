"""The story of a decision as plain data, which command line, REST and pages render: verdict, funnel, matrix, weights.

Sentences and numbers are made here from the snapshot, the ask and the configuration that the decision was taken on; without the
snapshot, or after the policy has changed, what the record alone says is left. Not here: one candidate in full (`why_not`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

import numpy as np

from broker_site.foundation.kernel.verdict import Kind
from brokerage.rules.decision.assembly import DecisionRequest, TaskDecision, able_queues, job_broker_inputs
from brokerage.rules.decision.declare import Criterion, Policy
from brokerage.rules.decision.pipeline import Evidence, decide, evidence, skip_of, skips
from brokerage.rules.decision.record import Record, config_of
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns, Flags

PASSED, FIRST, FURTHER = ".", {"persistent": "P", "temporary": "T"}, {"persistent": "p", "temporary": "t"}
"""Symbols of the matrix: passed; the first criterion that skipped; further ones that would have."""

_CHOICE = {
    "no_weight": "Every factor of its weight can be computed.",
    "below_min_weight": "Its weight is not below the least one that is configured.",
    "low_weight": "Its weight is among the best.",
}


@dataclass(frozen=True, slots=True)
class ChosenCandidate:
    """One chosen candidate with its weight and the factors that made it."""

    name: str
    weight: float
    factors: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Step:
    """One criterion over all candidates, in the order of the policy.

    `skipped`: how many it was the first to skip; `left`: how many were left after it; `failed`: how many fail it, also where
    another one was first; `alone`: how many fail nothing else, which is what lifting it would win. `about`: what it asks.
    `lasts`: who fails it can never pass unless somebody changes the task, the queue or the configuration.
    """

    criterion: str
    kind: Kind
    skipped: int
    left: int
    failed: int = 0
    alone: int = 0
    about: str = ""
    lasts: bool = False


@dataclass(frozen=True, slots=True)
class SkippedCandidate:
    """One skipped candidate with the first criterion that skipped it; `lasts`: it can never pass unless somebody changes the
    task, the queue or the configuration.
    """

    name: str
    criterion: str
    kind: Kind
    reason: str
    numbers: Mapping[str, Any]
    lasts: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a decision came to and why. `matrix` has per candidate one symbol for each of `criteria`.

    `skipped`, `matrix` and `lacks` (everything that the closest candidate fails) are empty where `detailed` is false. `eased` are
    criteria that gave way, as they would have left nobody. `noun`: what a candidate is. `until`: when the next try is, where the
    task waits and the time of the decision is known. `hopeless`: every candidate fails something that does not pass with time.
    `funnel`: the criteria that were the first to skip somebody; `further`: those that skip, but never first. `config`: the values
    that the policy read.
    """

    verdict: str
    policy: str
    outcome: str
    wait_s: float
    candidates: int
    chosen: tuple[ChosenCandidate, ...]
    funnel: tuple[Step, ...]
    closest: str
    detailed: bool = False
    lacks: tuple[SkippedCandidate, ...] = ()
    skipped: tuple[SkippedCandidate, ...] = ()
    criteria: tuple[str, ...] = ()
    matrix: Mapping[str, str] | None = None
    eased: tuple[str, ...] = ()
    noun: str = "candidate"
    until: datetime | None = None
    hopeless: bool = False
    further: tuple[Step, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)

    def to_document(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self) | {"until": self.until.isoformat() if self.until else None}


def explain(
    record: Record,
    policy: Policy | None,
    ask: Ask | None,
    columns: Columns | None,
    config: Config | None,
    decided_at: datetime | None = None,
) -> Explanation:
    """Tell a stored decision from what it was taken on; any of these may be gone. `decided_at` names the time of the next try."""
    outline = _outline(record, policy, columns.noun if columns is not None else "candidate", decided_at)
    if policy is None or ask is None or columns is None or config is None or not replayable(record, policy, columns):
        return outline
    entries = evidence(policy, ask, columns, config)
    failed = record.decision.failed()
    skipped = tuple(
        skipped_of(name, entries[first], row)
        for row, (name, first) in enumerate(zip(columns.name.tolist(), record.decision.first.tolist(), strict=True))
        if first >= 0
    )
    lacks = _lacks(outline.closest, columns, failed, entries)
    return replace(
        outline,
        verdict=verdict(outline, lacks),
        detailed=True,
        lacks=lacks,
        skipped=skipped,
        criteria=tuple(f"-{label}" for label in record.labels),
        matrix=_matrix(record, columns),
        config=config_of(policy, config),
    )


def _lacks(closest: str, columns: Columns, failed: Flags, entries: Sequence[Evidence]) -> tuple[SkippedCandidate, ...]:
    """Everything that the closest candidate fails; nothing where there is none."""
    if not closest:
        return ()
    row = columns.index[closest]
    return tuple(skipped_of(closest, entries[i], row) for i in np.flatnonzero(failed[:, row]).tolist())


def replayable(record: Record, policy: Policy, columns: Columns) -> bool:
    """Whether numbers can be made again: the same policy version, and rows that stand for the same candidates."""
    return (record.decision.version, record.decision.candidates) == (policy.version, columns.fingerprint)


def about(policy: Policy, criterion: Criterion) -> str:
    """What a criterion asks: the first sentence of its rule, or what the choice asks."""
    for rule in policy.rules:
        if criterion in rule.criteria:
            return rule.doc.strip().partition("\n")[0].partition(" Source:")[0].replace("`", "")
    return _CHOICE.get(criterion.label, "")


def _outline(record: Record, policy: Policy | None, noun: str, decided_at: datetime | None) -> Explanation:
    decision = record.decision
    policy = policy if policy is not None and policy.version == decision.version else None
    funnel, further = _steps(record, policy)
    pending = decision.outcome == "pending"
    outline = Explanation(
        verdict="",
        policy=decision.policy,
        outcome=decision.outcome,
        wait_s=decision.wait_s,
        candidates=len(decision.first),
        chosen=tuple(
            ChosenCandidate(choice.name, choice.weight, dict(zip(record.factors, choice.factors, strict=True)))
            for choice in decision.chosen
        ),
        funnel=tuple(funnel),
        closest=decision.closest,
        eased=tuple(dict.fromkeys(f"-{record.labels[i]}" for i in decision.eased)),
        noun=noun,
        until=decided_at + timedelta(seconds=decision.wait_s) if pending and decided_at is not None else None,
        hopeless=pending and policy is not None and hopeless(policy, decision.failed()),
        further=tuple(further),
    )
    return replace(outline, verdict=verdict(outline, ()))


def _steps(record: Record, policy: Policy | None) -> tuple[list[Step], list[Step]]:
    """The criteria that were first to skip somebody, and those that only skip whom another one skips before."""
    failed, first = record.decision.failed(), record.decision.first
    counts = np.bincount(first[first >= 0], minlength=len(record.labels)).tolist()
    alone = (failed & (failed.sum(axis=0) == 1)).sum(axis=1).tolist()
    left = len(first)
    funnel, further = [], []
    for i, count in enumerate(counts):
        left -= count
        question = about(policy, policy.criteria[i]) if policy is not None else ""
        lasts = policy.criteria[i].lasts if policy is not None else record.kinds[i] == "persistent"
        step = Step(f"-{record.labels[i]}", record.kinds[i], count, left, int(failed[i].sum()), alone[i], question, lasts)
        if count:
            funnel.append(step)
        elif step.failed:
            further.append(step)
    return funnel, further


def verdict(story: Explanation, lacks: Sequence[SkippedCandidate]) -> str:
    """The decision in one line; `lacks`: what the closest candidate fails, where that is known."""
    count = story.candidates
    nouns = story.noun if count == 1 else f"{story.noun}s"
    if story.outcome == "assign":
        best = story.chosen[0]
        return f"{len(story.chosen)} of {count} {nouns} taken; the best is {best.name} with the weight {best.weight:.4g}"
    when = f"until {story.until:%H:%M:%S} UTC" if story.until is not None else f"for {_duration(story.wait_s)}"
    return f"Pending {when}: {_shortfall(count, story.noun, story.hopeless, story.closest, lacks)}"


def shortfall(task_decision: TaskDecision[Any]) -> str:
    """Why a decision that was just taken found nobody: the sentence that is left with the task, and that its decision says."""
    decision, inputs = task_decision.decision, task_decision.inputs
    columns, failed = inputs.columns, decision.failed()
    lacks = _lacks(decision.closest, columns, failed, evidence(*inputs))
    return _shortfall(len(columns), columns.noun, hopeless(inputs.policy, failed), decision.closest, lacks)


def hopeless(policy: Policy, failed: Flags) -> bool:
    """Whether there are candidates, and each fails something that only a change of task, queue or configuration can mend."""
    return failed.shape[1] > 0 and bool(failed[policy.lasting].any(axis=0).all())


def _shortfall(count: int, noun: str, never: bool, closest: str, lacks: Sequence[SkippedCandidate]) -> str:
    if not count:
        return f"there is no {noun} at all"
    if count == 1:
        passed = f"the only {noun} {'can never take it' if never else 'does not pass now'}"
    else:
        passed = f"none of {count} {noun}s can ever take it" if never else f"0 of {count} {noun}s pass now"
    return f"{passed}; the closest is {closest}{_lacking(lacks)}"


def _lacking(lacks: Sequence[SkippedCandidate]) -> str:
    """What the closest candidate fails: the first in words, what lasts before what passes, the others by name."""
    if not lacks:
        return ""
    first = next((lack for lack in lacks if lack.lasts), lacks[0])
    others = list(dict.fromkeys(lack.criterion for lack in lacks if lack is not first))
    more = f", and it fails {', '.join(others)}" if others else ""
    return f": {first.reason} ({first.criterion}){more}"


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


def skipped_of(name: str, entry: Evidence, row: int) -> SkippedCandidate:
    """The skip of the candidate in this row by a criterion, as JSON can hold it."""
    skip = skip_of(entry, row)
    return SkippedCandidate(name, skip.criterion, skip.kind, skip.reason, plain(skip.numbers), entry[0].lasts)


def plain(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as JSON can hold them."""
    return {name: finite(value) for name, value in numbers.items()}


def finite(value: Any) -> Any:
    """JSON has no name for what is not a number: null."""
    return None if isinstance(value, float) and not isfinite(value) else value


def decision_document(task_decision: TaskDecision[Any]) -> dict[str, Any]:
    """A decision as `manage.py decide` prints it: the chosen, best first, and every skipped candidate by name with its first
    criterion.
    """
    decision, inputs = task_decision.decision, task_decision.inputs
    names = [factor.name for factor in inputs.policy.weights]
    return {
        "policy": decision.policy,
        "outcome": decision.outcome,
        "chosen": [
            {"queue": c.name, "weight": c.weight, "factors": dict(zip(names, c.factors, strict=True))} for c in decision.chosen
        ],
        "skipped": [
            {
                "queue": name,
                "criterion": skip.criterion,
                "kind": skip.kind,
                "reason": skip.reason,
                "numbers": plain(skip.numbers),
            }
            for name, skip in sorted(skips(decision, *inputs).items())
        ],
        "closest": decision.closest or None,
        "wait_s": decision.wait_s,
        "eased": list(dict.fromkeys(f"-{inputs.policy.criteria[i].label}" for i in decision.eased)),
    }


NO_QUEUE = "job"
"""The criterion that skips a nucleus whose queues cannot run the jobs."""
MOST_NAMED = 3
"""Sites that a sentence names."""


def why_no_nucleus(request: DecisionRequest, task_decision: TaskDecision[Any]) -> str:
    """The reason with which the task waits."""
    reason, criteria = shortfall(task_decision), request.policy.criteria
    if any(criteria[row].label == NO_QUEUE for row in task_decision.decision.first.tolist() if row >= 0):
        reason += f"; {where_able(request)}"
    return reason


def where_able(request: DecisionRequest) -> str:
    """Where the jobs of a task could run at all: sites, or the closest queue and what it lacks."""
    inputs = job_broker_inputs(request)
    if sites := able_queues(*inputs):
        more = f" and {len(sites) - MOST_NAMED} more sites" if len(sites) > MOST_NAMED else ""
        return f"its jobs could run at {', '.join(sorted(sites)[:MOST_NAMED])}{more}"
    decision = decide(*inputs, "")
    if not decision.closest:
        return "there is no queue for such tasks"
    failed = decision.failed()
    never = hopeless(inputs.policy, failed)
    lacks = _lacks(decision.closest, inputs.columns, failed, evidence(*inputs))
    where = "its jobs can run nowhere" if never else "no queue takes its jobs now"
    return f"{where}: the closest queue is {decision.closest}{_lacking(lacks)}"
