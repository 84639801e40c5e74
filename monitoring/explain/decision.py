"""A stored decision as its page shows it: the story, and the matrix with the closest candidates first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice

from brokerage.queries.decisions import Basis
from brokerage.rules.declare import Policy
from brokerage.rules.explain import Explanation, Skipped, about, explain
from brokerage.rules.why_not import WhyNot, why_not
from monitoring.queries.decisions import StoredDecision


@dataclass(frozen=True, slots=True)
class Mark:
    """One cell of the matrix: what a symbol of the explanation looks like and says."""

    symbol: str
    tone: str
    said: str


MARKS = {
    ".": Mark("·", "ok", "passed"),
    "P": Mark("✗", "first lasting", "skipped by this first; lasting"),
    "T": Mark("◷", "first passing", "skipped by this first; may pass with time"),
    "p": Mark("✕", "lasting", "would be skipped by this too; lasting"),
    "t": Mark("◦", "passing", "would be skipped by this too; may pass with time"),
}


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One candidate: whether it was chosen, and a mark per criterion."""

    name: str
    chosen: bool
    marks: tuple[Mark, ...]
    skip: Skipped | None


@dataclass(frozen=True, slots=True)
class Criterion:
    """One column of the matrix: label, which no other column has, and what it asks."""

    label: str
    help: str


@dataclass(frozen=True, slots=True)
class Told:
    """A decision told. `fault`: why it cannot be, in words; then there is no `story`. `cut`: candidates not in `matrix`."""

    fault: str = ""
    noun: str = "candidate"
    story: Explanation | None = None
    criteria: tuple[Criterion, ...] = ()
    matrix: tuple[MatrixRow, ...] = ()
    cut: int = 0
    asked: WhyNot | None = None


def tell(stored: StoredDecision, candidate: str = "", most: int | None = None) -> Told:
    """Tell a stored decision; `candidate`: also every verdict on this one; `most`: rows of the matrix."""
    on = stored.basis
    if on.record is None:
        return Told(fault="its record is of a format that is no longer read")
    story = explain(on.record, on.policy, on.ask, on.columns, on.config, stored.row.last_at)
    rows = _ranked(story)
    return Told(
        noun=on.columns.noun if on.columns is not None else "candidate",
        story=story,
        criteria=_columns(story, on.policy),
        matrix=tuple(islice(rows, most)),
        cut=max(len(rows) - most, 0) if most is not None else 0,
        asked=_asked(on, candidate) if candidate else None,
    )


def _asked(on: Basis, name: str) -> WhyNot | None:
    """Every verdict on one candidate; None where it took no part or the decision can no longer be told in full."""
    if on.record is None or on.policy is None or on.ask is None or on.columns is None or name not in on.columns.index:
        return None
    try:
        return why_not(on.record, on.policy, on.ask, on.columns, on.config, name)
    except ValueError:
        return None


def _ranked(story: Explanation) -> list[MatrixRow]:
    """Chosen ones by weight, then those that fail the fewest criteria, then by name."""
    skips = {skip.name: skip for skip in story.skipped}
    rank = {choice.name: i for i, choice in enumerate(story.chosen)}
    matrix = story.matrix or {}
    names = sorted(matrix, key=lambda name: (rank.get(name, len(rank)), len(matrix[name]) - matrix[name].count("."), name))
    return [MatrixRow(name, name in rank, tuple(MARKS[mark] for mark in matrix[name]), skips.get(name)) for name in names]


def _columns(story: Explanation, policy: Policy | None) -> tuple[Criterion, ...]:
    """The criteria of the story with what each asks; where a label stands several times, the later ones have a number."""
    if policy is None:
        return tuple(Criterion(label, "") for label in story.criteria)
    seen: Counter[str] = Counter()
    columns = []
    for label, criterion in zip(story.criteria, policy.criteria, strict=False):
        seen[label] += 1
        columns.append(Criterion(label if seen[label] == 1 else f"{label} {seen[label]}", about(policy, criterion)))
    return tuple(columns)
