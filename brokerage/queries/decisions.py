"""Stored decisions with what they were taken on, read back for whoever asks why: command line and REST."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import brokerage.policies  # noqa: F401 - declares the policies that stored decisions name
from brokerage.models import Decision
from brokerage.rules.ask import Ask, BadAsk
from brokerage.rules.columns import BadRows, Columns
from brokerage.rules.decision_record import BadRecord, Record, decode
from brokerage.rules.declare import POLICIES, Config, Policy
from brokerage.rules.explain import Explanation, explain
from brokerage.rules.snapshot import Nuclei, Queues
from brokerage.rules.why_not import WhyNot, why_not

TABLES: tuple[type[Columns], ...] = (Queues, Nuclei)


class NotTold(Exception):
    """What is asked about a decision can no longer be made again: its snapshot or its policy is gone."""


class NotACandidate(Exception):
    """The decision knew nobody of this name."""


@dataclass(frozen=True, slots=True)
class Basis:
    """A decision as stored with what it was taken on; None for what is gone or has another format by now."""

    record: Record | None
    policy: Policy | None
    ask: Ask | None
    columns: Columns | None
    config: Config


def latest(task_id: int, most: int = 1) -> list[Decision]:
    """The last decision of each policy about a task, then older ones: at most `most` per policy, newest first."""
    found: list[Decision] = []
    policies = Decision.objects.filter(task_id=task_id).order_by("policy").values_list("policy", flat=True).distinct()
    for policy in policies:
        found += Decision.objects.filter(task_id=task_id, policy=policy).select_related("snapshot").order_by("-id")[:most]
    return sorted(found, key=lambda d: -d.id)


def basis(decision: Decision) -> Basis:
    """Read everything that belongs to a decision (fetch `snapshot` with it)."""
    try:
        record = decode(bytes(decision.record))
    except BadRecord:
        record = None
    try:
        ask = Ask.from_document(decision.ask)
    except BadAsk:
        ask = None
    columns = None if decision.snapshot is None else _columns(bytes(decision.snapshot.columns))
    return Basis(record, POLICIES.get(decision.policy), ask, columns, decision.config)


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """One decision as stored: what was asked and answered, and by `columns()` on what.

    `policy`, `ask` and `record` are None where they are gone or have another format by now; `name` is that of the policy.
    """

    id: int
    task_id: int
    name: str
    policy: Policy | None
    ask: Ask | None
    config: Config
    record: Record | None
    first_at: datetime
    last_at: datetime
    n_times: int
    row: Decision

    def columns(self) -> Columns | None:
        """The candidates as the decision saw them; None when the snapshot is gone."""
        return None if self.row.snapshot is None else _columns(bytes(self.row.snapshot.columns))


def stored(decision_id: int, using: str = "default") -> StoredDecision | None:
    """A decision by its number; None when there is none. `using`: the database to ask, as pages have one that only reads."""
    found = Decision.objects.using(using).select_related("snapshot").filter(id=decision_id).first()
    return None if found is None else as_stored(found)


def as_stored(row: Decision) -> StoredDecision:
    """The same of a row that was fetched with its snapshot."""
    on = basis(row)
    return StoredDecision(
        row.id, row.task_id, row.policy, on.policy, on.ask, on.config, on.record, row.first_at, row.last_at, row.n_times, row
    )


def told(decision: Decision) -> Explanation | None:
    """The story of a decision; None when its record is of a format that is no longer read."""
    on = basis(decision)
    if on.record is None:
        return None
    return explain(on.record, on.policy, on.ask, on.columns, on.config, decision.last_at)


def told_why_not(decision: Decision, name: str) -> WhyNot:
    """Every verdict on one candidate. Raises NotACandidate, NotTold."""
    on = basis(decision)
    if on.record is None or on.policy is None or on.ask is None or on.columns is None:
        raise NotTold("the snapshot on which the decision was taken is no longer kept")
    if name not in on.columns.index:
        raise NotACandidate(f"the decision knew no {on.columns.noun} {name!r}")
    try:
        return why_not(on.record, on.policy, on.ask, on.columns, on.config, name)
    except ValueError as changed:
        raise NotTold(str(changed)) from changed


def _columns(packed: bytes) -> Columns | None:
    for table in TABLES:
        try:
            return table.from_bytes(packed)
        except BadRows:
            continue
    return None
