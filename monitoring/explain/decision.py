"""A stored decision as its page shows it: the story, and the matrix with the closest candidates first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from brokerage.queries.decisions import Basis
from brokerage.rules.declare import Policy
from brokerage.rules.explain import Explanation, Skipped, explain
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
    """One column of the matrix: label and what it asks."""

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
        criteria=tuple(Criterion(label, _help(on.policy, label)) for label in story.criteria),
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


def _help(policy: Policy | None, label: str) -> str:
    """The first sentence of the rule that has the criterion."""
    if policy is None:
        return ""
    for rule in policy.rules:
        if any(f"-{criterion.label}" == label for criterion in rule.criteria):
            return rule.doc.strip().partition("\n")[0]
    return next((c.reason.partition("{")[0].strip() for c in policy.criteria if f"-{c.label}" == label), "")
