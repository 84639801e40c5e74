"""Stored decisions of a task, and one of them with what it was taken on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from brokerage.models import Decision
from brokerage.queries.decisions import DecisionFacts, decision_facts, with_snapshot
from brokerage.rules.facts.columns import Columns
from monitoring.queries.database import alias

MOST = 30
"""Decisions that a page lists, the newest."""
KEPT_TABLES = 8
_TABLES: dict[tuple[int, int | None, datetime], Columns] = {}
"""(decision, snapshot, when it was first taken) -> its candidates: half a MB for a thousand."""


_LISTED = (
    "id", "policy", "outcome", "n_candidates", "n_chosen", "n_times", "first_at", "last_at", "config_revision", "seed",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DecisionPage:
    """A decision with what it was taken on, and its candidates; None where they are gone."""

    facts: DecisionFacts
    columns: Columns | None


def decisions_of(task_id: int) -> list[Decision]:
    """The newest decisions about a task with what a list shows of them, newest first."""
    return list(Decision.objects.using(alias()).filter(task_id=task_id).only(*_LISTED).order_by("-id")[:MOST])


def stored_decision(task_id: int, decision_id: int) -> DecisionPage | None:
    stored = with_snapshot(Decision.objects.using(alias())).filter(task_id=task_id, id=decision_id).first()
    if stored is None:
        return None
    facts = decision_facts(stored)
    return DecisionPage(facts, _columns_of(facts))


def _columns_of(facts: DecisionFacts) -> Columns | None:
    """The candidates as the decision saw them, kept for who looks at the same decision again: pages are filtered and leafed."""
    key = (facts.row.id, facts.row.snapshot_id, facts.row.first_at)
    if key not in _TABLES:
        columns = facts.columns()
        if columns is None:
            return None
        if len(_TABLES) >= KEPT_TABLES:
            _TABLES.pop(next(iter(_TABLES)), None)
        _TABLES[key] = columns
    return _TABLES.get(key)
