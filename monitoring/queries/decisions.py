"""Stored decisions of a task, and one of them with what it was taken on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from brokerage.models import Decision
from brokerage.queries.decisions import DecisionFacts, decision_facts, with_snapshot
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.record import Record
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns
from monitoring.queries.database import alias

MOST = 30
"""Decisions that a page lists, the newest."""
KEPT_TABLES = 8
_TABLES: dict[tuple[int, int | None, datetime], Columns] = {}
"""(decision, snapshot, when it was first taken) -> its candidates: half a MB for a thousand."""


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One stored decision; `n_times` equal ones in a row were taken between `first_at` and `last_at`."""

    id: int
    policy: str
    outcome: str
    n_candidates: int
    n_chosen: int
    n_times: int
    first_at: datetime
    last_at: datetime
    config_revision: int
    seed: str


@dataclass(frozen=True, slots=True)
class DecisionPage:
    """A decision with what it was taken on; None for what is gone or has another format by now.

    `snapshot_at`: of when the grid is that it saw.
    """

    row: DecisionRow
    record: Record | None
    policy: Policy | None
    ask: Ask | None
    config: Config
    columns: Columns | None
    snapshot_id: int | None
    snapshot_at: datetime | None


_COLUMNS = tuple(DecisionRow.__dataclass_fields__)


def decisions_of(task_id: int) -> list[DecisionRow]:
    newest = Decision.objects.using(alias()).filter(task_id=task_id).order_by("-id")[:MOST]
    return [DecisionRow(*row) for row in newest.values_list(*_COLUMNS)]


def stored_decision(task_id: int, decision_id: int) -> DecisionPage | None:
    stored = with_snapshot(Decision.objects.using(alias())).filter(task_id=task_id, id=decision_id).first()
    if stored is None:
        return None
    facts = decision_facts(stored)
    return DecisionPage(
        row=DecisionRow(*(getattr(stored, column) for column in _COLUMNS)),
        record=facts.record,
        policy=facts.policy,
        ask=facts.ask,
        config=facts.config,
        columns=_columns_of(facts),
        snapshot_id=stored.snapshot_id,
        snapshot_at=stored.snapshot.at if stored.snapshot is not None else None,
    )


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
