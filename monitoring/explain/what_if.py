"""A what-if as its page shows it: what is asked for, and both funnels side by side. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from brokerage.rules.explain.edits import PARAMETERS, Edit, read_edits
from brokerage.rules.explain.explanation import Explanation
from brokerage.rules.explain.what_if import WhatIf
from brokerage.rules.facts.ask import Ask
from monitoring.wording import RAM_UNITS

FIELDS = {
    "ramCount": "Memory",
    "coreCount": "Cores",
    "walltime_s": "Walltime of a job, s",
    "currentPriority": "Priority",
    "site": "Only these queues",
}
"""Edits that have a field of their own in the form; all others are lines of `change`."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the form: its present value stands where nothing is typed."""

    name: str
    label: str
    value: str
    now: str


@dataclass(frozen=True, slots=True)
class AskedChange:
    """One thing that is different, before and after, `unit` maybe empty. `raw`: it has no words but its name."""

    what: str
    raw: bool
    before: Any
    after: Any
    unit: str


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """One criterion in both funnels; None where it was not the first to skip anybody there."""

    criterion: str
    about: str
    skipped: int | None
    left: int
    skipped_then: int | None
    left_then: int


@dataclass(frozen=True, slots=True)
class WeightRow:
    """One candidate that is chosen now or then, with its weights."""

    name: str
    now: float | None
    then: float | None


def form_edits(sent: Mapping[str, str]) -> tuple[Edit, ...]:
    """The edits of an address: the fields that hold something, then one for each line of `change`. Raises BadEdits."""
    fields = [f"{name}={sent[name]}" for name in FIELDS if sent.get(name, "").strip()]
    return read_edits([*fields, *(line for line in sent.get("change", "").splitlines() if line.strip())])


def form_fields(sent: Mapping[str, str], ask: Ask | None) -> list[Field]:
    """The fields with what was typed and what holds now."""
    fields = []
    for name, label in FIELDS.items():
        value = getattr(ask, PARAMETERS[name].name) if ask is not None else None
        unit = f", {_ram_unit(ask)}" if name == "ramCount" and ask is not None else ""
        present = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        fields.append(Field(name, label + unit, sent.get(name, "").strip(), present))
    return fields


def asked_words(result: WhatIf) -> list[AskedChange]:
    """What is different, in the words of the form; names as they were typed where the form has none."""
    units = {"ramCount": _ram_unit(result.ask), "walltime_s": "s"}
    labels = {name: label.partition(",")[0] for name, label in FIELDS.items()}
    return [
        AskedChange(labels.get(edit.name, edit.name), edit.name not in labels, edit.before, edit.after, units.get(edit.name, ""))
        for edit in result.edits
    ]


def _ram_unit(ask: Ask) -> str:
    return RAM_UNITS.get(ask.ram_unit or "", ask.ram_unit or "MB")


def funnel_rows(result: WhatIf) -> list[FunnelRow]:
    """Each criterion that is the first to skip somebody now or then, in the order of the policy."""
    if result.after is None:
        return []
    now, then = _steps(result.before), _steps(result.after)
    order = {label: i for i, label in enumerate(result.before.criteria or result.after.criteria)}
    labels = sorted({*now, *then}, key=lambda label: order.get(label, len(order)))
    rows, left, left_then = [], result.before.candidates, result.after.candidates
    for label in labels:
        skipped, left, help_now = now.get(label, (None, left, ""))
        skipped_then, left_then, help_then = then.get(label, (None, left_then, ""))
        rows.append(FunnelRow(label, help_now or help_then, skipped, left, skipped_then, left_then))
    return rows


def verdict_changes(result: WhatIf) -> list[tuple[str, str, int]]:
    """(verdict now, verdict then, how many candidates), the most first."""
    counts = Counter((change.before, change.after) for change in result.changed)
    return [(*pair, n) for pair, n in counts.most_common()]


def weight_rows(result: WhatIf) -> Iterator[WeightRow]:
    """Whoever is chosen on one side, in the order of then."""
    if result.after is None:
        return
    now, then = ({choice.name: choice.weight for choice in story.chosen} for story in (result.before, result.after))
    for name in dict.fromkeys([*then, *now]):
        yield WeightRow(name, now.get(name), then.get(name))


def _steps(story: Explanation) -> dict[str, tuple[int | None, int, str]]:
    """Criterion -> skipped, left after it, what it asks; criteria with one label are one."""
    steps: dict[str, tuple[int | None, int, str]] = {}
    for step in story.funnel:
        before = steps.get(step.criterion, (0, 0, ""))[0] or 0
        steps[step.criterion] = (before + step.skipped, step.left, step.about)
    return steps
