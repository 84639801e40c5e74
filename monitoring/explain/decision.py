"""A stored decision as its page shows it: the story, and the matrix page by page with the closest candidates first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from brokerage.queries.decisions import NotACandidate, NotReproducible, verdicts_on
from brokerage.rules.decision.declare import Policy
from brokerage.rules.explain.explanation import NO_QUEUE, Explanation, SkippedCandidate, about, explain
from brokerage.rules.explain.why_not import WhyNot
from monitoring.explain.matrix_filter import SIZE, MatrixFilter
from monitoring.queries.decisions import DecisionPage


@dataclass(frozen=True, slots=True)
class Mark:
    """How a symbol of the explanation is shown in a cell of the matrix."""

    symbol: str
    tone: str
    meaning: str


MARKS = {
    ".": Mark("✓", "ok", "passed"),
    "P": Mark("✗", "first lasting", "skipped by this first; lasting"),
    "T": Mark("◷", "first passing", "skipped by this first; may pass with time"),
    "p": Mark("✕", "lasting", "would be skipped by this too; lasting"),
    "t": Mark("◦", "passing", "would be skipped by this too; may pass with time"),
}
PASSED = '<td class="{1}">{0}</td>'
SKIPPED = '<td><span class="mark {1}" aria-hidden="true">{0}</span><span class="unseen">{2}</span></td>'
CELLS = {
    symbol: format_html(PASSED if symbol == "." else SKIPPED, mark.symbol, mark.tone, mark.meaning)
    for symbol, mark in MARKS.items()
}
"""Made once: a page has some thousands of them."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One candidate: whether it was chosen, and a cell of the table per criterion."""

    name: str
    chosen: bool
    marks: SafeString
    skip: SkippedCandidate | None


@dataclass(frozen=True, slots=True)
class Column:
    """One criterion of the matrix: label, which no other column has, and what it asks."""

    label: str
    help: str


@dataclass(frozen=True, slots=True)
class DecisionPanel:
    """A decision as its page shows it. `fault`: why it cannot be read, in words; then there is no `story`.

    `matrix` are the candidates of this page, `shown` how many there are on all pages; `why_not`: every verdict on one candidate,
    or on each part of a unified queue; `config`: the values that the decision read. `by_jobs`: what may pass is
    that no queue of a site takes the jobs, of which this decision does not tell whether it lasts.
    """

    fault: str = ""
    noun: str = "candidate"
    story: Explanation | None = None
    criteria: tuple[Column, ...] = ()
    labels: tuple[str, ...] = ()
    matrix: tuple[MatrixRow, ...] = ()
    shown: int = 0
    pages: int = 1
    matrix_filter: MatrixFilter = field(default_factory=MatrixFilter)
    why_not: tuple[WhyNot, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    by_jobs: bool = False


def decision_panel(stored: DecisionPage, candidate: str = "", matrix_filter: MatrixFilter | None = None) -> DecisionPanel:
    """The panel of a stored decision; `candidate`: also every verdict on this one; `matrix_filter`: which of the others."""
    facts = stored.facts
    if facts.record is None:
        return DecisionPanel(fault="its record is of a format that is no longer read")
    story = explain(facts.record, facts.policy, facts.ask, stored.columns, facts.config, facts.row.last_at)
    matrix_filter = matrix_filter or MatrixFilter()
    ranked = _ranked(story, matrix_filter)
    pages = max(-(-len(ranked) // SIZE), 1)
    page = min(matrix_filter.page, pages)
    return DecisionPanel(
        noun=story.noun,
        story=story,
        criteria=_columns(facts.policy, story),
        labels=tuple(sorted({step.criterion for step in (*story.funnel, *story.further)})),
        matrix=_rows(story, ranked[(page - 1) * SIZE : page * SIZE]),
        shown=len(ranked),
        pages=pages,
        matrix_filter=replace(matrix_filter, page=page),
        why_not=_why_not(stored, candidate) if candidate else (),
        config=dict(sorted(facts.config.items())),
        by_jobs=[step.criterion for step in story.funnel if not step.lasts] == [f"-{NO_QUEUE}"],
    )


def _why_not(stored: DecisionPage, name: str) -> tuple[WhyNot, ...]:
    """Every verdict on the candidate; none where it took no part or the decision can no longer be read in full."""
    try:
        return verdicts_on(stored.facts, stored.columns, name)
    except (NotACandidate, NotReproducible):
        return ()


def _ranked(story: Explanation, matrix_filter: MatrixFilter) -> list[str]:
    """Chosen ones by weight, then those that fail the fewest criteria, then by name."""
    rank = {choice.name: i for i, choice in enumerate(story.chosen)}
    matrix: Mapping[str, str] = story.matrix or {}
    names = [name for name, marks in matrix.items() if matrix_filter.takes(name, marks, story.criteria)]
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), len(matrix[name]) - matrix[name].count("."), name))


def _rows(story: Explanation, names: list[str]) -> tuple[MatrixRow, ...]:
    skips = {skip.name: skip for skip in story.skipped}
    matrix: Mapping[str, str] = story.matrix or {}
    return tuple(
        MatrixRow(name, name not in skips, format_html_join("", "{}", ((CELLS[mark],) for mark in matrix[name])), skips.get(name))
        for name in names
    )


def _columns(policy: Policy | None, story: Explanation) -> tuple[Column, ...]:
    """The criteria with what each asks; where a label stands several times, the later ones have a number."""
    if policy is None or not story.criteria:
        return ()
    seen: Counter[str] = Counter()
    columns = []
    for label, criterion in zip(story.criteria, policy.criteria, strict=True):
        seen[label] += 1
        columns.append(Column(label if seen[label] == 1 else f"{label} {seen[label]}", about(policy, criterion)))
    return tuple(columns)
