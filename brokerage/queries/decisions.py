"""Stored decisions with what they were taken on, read back for whoever asks why: command line and REST."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

import brokerage.policies  # noqa: F401 - declares the policies that stored decisions name
from broker_site.foundation.outside_data import OutsideDataError
from brokerage.models import Decision
from brokerage.rules.decision.candidates import table
from brokerage.rules.decision.declare import POLICIES, Policy
from brokerage.rules.decision.dry_run import scope_of
from brokerage.rules.decision.policy_config import component_of
from brokerage.rules.decision.record import BadRecord, Record, decode
from brokerage.rules.explain.explanation import Explanation, explain
from brokerage.rules.explain.why_not import WhyNot, why_not
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import BadSnapshot, TaskFacts, document, unpacked, with_own


class NotReproducible(Exception):
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
        found += with_snapshot(Decision.objects.filter(task_id=task_id, policy=policy)).order_by("-id")[:most]
    return sorted(found, key=lambda d: -d.id)


def basis(decision: Decision) -> Basis:
    """Read everything that belongs to a decision (fetch `snapshot__grid` and `snapshot__links` with it)."""
    found = as_stored(decision)
    return Basis(found.record, found.policy, found.ask, found.columns(), found.config)


@dataclass(frozen=True)
class DecisionFacts:
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
        """The candidates as the decision saw them; None when the snapshot, or what reads it, is gone."""
        if self.world is None or self.policy is None or self.ask is None:
            return None
        return table(self.world, self.own, self.policy, self.ask)

    @cached_property
    def world(self) -> GridSnapshot | None:
        """The snapshot of its cycle; None when that is gone."""
        snapshot = self.row.snapshot
        if snapshot is None:
            return None
        scope = scope_of(self.ask.prod_source_label) if self.ask else ""
        try:
            return unpacked(bytes(snapshot.grid.content), bytes(snapshot.links.content), bytes(snapshot.moment), scope)
        except BadSnapshot:
            return None

    @cached_property
    def own(self) -> TaskFacts:
        """What the decision knew beyond the snapshot."""
        try:
            return TaskFacts.from_bytes(bytes(self.row.own))
        except BadSnapshot:
            return TaskFacts()

    def documents(self) -> dict[str, dict[str, Any]] | None:
        """The documents with which `manage.py decide` takes the decision again: task, grid and config; None without snapshot."""
        if self.world is None or self.ask is None or self.policy is None:
            return None
        config: dict[str, dict[str, Any]] = {}
        for key, value in self.config.items():
            if value is not None and (component := component_of(self.policy, key)):
                config.setdefault(component, {})[key] = value
        return {"task": self.ask.to_document(), "grid": document(with_own(self.world, self.own)), "config": config}


def stored(decision_id: int, using: str = "default") -> DecisionFacts | None:
    """A decision by its number; None when there is none. `using`: the database to ask, as pages have one that only reads."""
    found = with_snapshot(Decision.objects.using(using)).filter(id=decision_id).first()
    return None if found is None else as_stored(found)


def with_snapshot(rows: QuerySet[Decision]) -> QuerySet[Decision]:
    """Decisions fetched with what they were taken on."""
    return rows.select_related("snapshot__grid", "snapshot__links")


def as_stored(row: Decision) -> DecisionFacts:
    """The same of a row (`with_snapshot`)."""
    try:
        record = decode(bytes(row.record))
    except BadRecord:
        record = None
    try:
        ask = Ask.from_document(row.ask)
    except OutsideDataError:
        ask = None
    policy = POLICIES.get(row.policy)
    return DecisionFacts(
        row.id, row.task_id, row.policy, policy, ask, row.config, record, row.first_at, row.last_at, row.n_times, row
    )


def told(decision: Decision) -> Explanation | None:
    """The story of a decision; None when its record is of a format that is no longer read."""
    on = basis(decision)
    if on.record is None:
        return None
    return explain(on.record, on.policy, on.ask, on.columns, on.config, decision.last_at)


def told_why_not(decision: Decision, name: str) -> WhyNot:
    """Every verdict on one candidate. Raises NotACandidate, NotReproducible."""
    on = basis(decision)
    if on.record is None or on.policy is None or on.ask is None or on.columns is None:
        raise NotReproducible("the snapshot on which the decision was taken is no longer kept")
    if name not in on.columns.index:
        raise NotACandidate(f"the decision knew no {on.columns.noun} {name!r}")
    try:
        return why_not(on.record, on.policy, on.ask, on.columns, on.config, name)
    except ValueError as changed:
        raise NotReproducible(str(changed)) from changed
