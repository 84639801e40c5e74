"""Stored decisions with what they were taken on, read back for whoever asks why: command line and REST."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

import brokerage.policies  # noqa: F401 - declares the policies that stored decisions name
from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.outside_data import OutsideDataError
from brokerage.models import Decision
from brokerage.rules.decision.assembly import candidates
from brokerage.rules.decision.declare import POLICIES, Policy
from brokerage.rules.decision.policy_config import component_of
from brokerage.rules.decision.record import BadRecord, Record, decode
from brokerage.rules.explain.explanation import Explanation, explain
from brokerage.rules.explain.why_not import WhyNot, candidates_named, why_not
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import BadSnapshot, TaskFacts, document, unpacked, with_task_facts


class NotReproducible(Exception):
    """What is asked about a decision can no longer be made again: its snapshot or its policy is gone."""


class NotACandidate(Exception):
    """The decision knew nobody of this name."""


def latest(task_id: int, most: int = 1) -> list[Decision]:
    """The last decision of each policy about a task, then older ones: at most `most` per policy, newest first."""
    rows: list[Decision] = []
    policies = Decision.objects.filter(task_id=task_id).order_by("policy").values_list("policy", flat=True).distinct()
    for policy in policies:
        rows += with_snapshot(Decision.objects.filter(task_id=task_id, policy=policy)).order_by("-id")[:most]
    return sorted(rows, key=lambda d: -d.id)


@dataclass(frozen=True)
class DecisionFacts:
    """One decision as stored: what was asked and answered, and by `columns()` on what.

    `policy`, `ask` and `record` are None where they are gone or have another format by now.
    """

    row: Decision
    policy: Policy | None
    ask: Ask | None
    config: Config
    record: Record | None

    def columns(self) -> Columns | None:
        """The candidates as the decision saw them; None when the snapshot, or what reads it, is gone."""
        if self.snapshot is None or self.policy is None or self.ask is None:
            return None
        return candidates(self.snapshot, self.task_facts, self.policy, self.ask)

    @cached_property
    def snapshot(self) -> GridSnapshot | None:
        """The snapshot of its cycle; None when that is gone."""
        stored = self.row.snapshot
        if stored is None:
            return None
        try:
            return unpacked(bytes(stored.grid.content), bytes(stored.links.content), bytes(stored.moment))
        except BadSnapshot:
            return None

    @cached_property
    def task_facts(self) -> TaskFacts:
        """What the decision knew beyond the snapshot."""
        try:
            return TaskFacts.from_bytes(bytes(self.row.own))
        except BadSnapshot:
            return TaskFacts()

    def documents(self) -> dict[str, dict[str, Any]] | None:
        """The documents with which `manage.py decide` takes the decision again: task, grid and config; None without snapshot."""
        if self.snapshot is None or self.ask is None or self.policy is None:
            return None
        config: dict[str, dict[str, Any]] = {}
        for key, value in self.config.items():
            if value is not None and (component := component_of(self.policy, key)):
                config.setdefault(component, {})[key] = value
        return {
            "task": self.ask.to_document(),
            "grid": document(with_task_facts(self.snapshot, self.task_facts)),
            "config": config,
        }


def with_snapshot(rows: QuerySet[Decision]) -> QuerySet[Decision]:
    """Decisions fetched with what they were taken on."""
    return rows.select_related("snapshot__grid", "snapshot__links")


def decision_facts(row: Decision) -> DecisionFacts:
    """What a row (`with_snapshot`) says."""
    try:
        record = decode(bytes(row.record))
    except BadRecord:
        record = None
    try:
        ask = Ask.from_document(row.ask)
    except OutsideDataError:
        ask = None
    return DecisionFacts(row, POLICIES.get(row.policy), ask, row.config, record)


def explanation_of(row: Decision) -> Explanation | None:
    """The story of a decision; None when its record is of a format that is no longer read."""
    facts = decision_facts(row)
    if facts.record is None:
        return None
    return explain(facts.record, facts.policy, facts.ask, facts.columns(), facts.config, row.last_at)


def why_not_of(row: Decision, name: str) -> tuple[WhyNot, ...]:
    """Every verdict on one candidate, or on each part of a unified queue. Raises NotACandidate, NotReproducible."""
    facts = decision_facts(row)
    return verdicts_on(facts, facts.columns(), name)


def verdicts_on(facts: DecisionFacts, columns: Columns | None, name: str) -> tuple[WhyNot, ...]:
    """The same from what was read before."""
    if facts.record is None or facts.policy is None or facts.ask is None or columns is None:
        raise NotReproducible("the snapshot on which the decision was taken is no longer kept")
    if not (names := candidates_named(columns, name)):
        hint = f"; the nearest name is {near}" if (near := nearest(name, columns.index)) else ""
        raise NotACandidate(f"the decision knew no {columns.noun} {name!r}{hint}")
    try:
        return tuple(why_not(facts.record, facts.policy, facts.ask, columns, facts.config, each) for each in names)
    except ValueError as changed:
        raise NotReproducible(str(changed)) from changed
