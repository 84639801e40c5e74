"""Stored decisions: equal ones in a row are counted, the parts of a snapshot are stored once, old ones go (decision B16)."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from brokerage.models import Decision, GridPart, StoredSnapshot
from brokerage.rules.decision.assembly import TaskDecision
from brokerage.rules.decision.record import asked_alike, encode, sameness
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import compressed, packed

KEPT_SNAPSHOTS = 50
"""How many of the newest snapshots are kept whatever refers to them."""


UNSTORABLE = (DataError, IntegrityError, TypeError, ValueError)
"""What a decision raises that the database or JSON cannot hold, as one of a plugin may be."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class CycleDecisions:
    """The decisions of one cycle; they wait here to be stored together, their snapshot once."""

    snapshot: GridSnapshot
    config_revision: int
    _unstored: list[TaskDecision[Any]] = field(default_factory=list)
    _snapshot_id: int | None = None

    def add(self, decision: TaskDecision[Any]) -> None:
        """Keep a decision until the others are stored."""
        self._unstored.append(decision)

    def store(self) -> int:
        """Store what was decided since the last time: the number of the last decision, 0 where there is none.

        One that cannot be stored holds up no other; it raises only where it is the last, which is that of the task at hand.
        """
        if not self._unstored:
            return 0
        if self._snapshot_id is None:
            self._snapshot_id = store_snapshot(self.snapshot)
        decisions, self._unstored = self._unstored, []
        try:
            return record_decisions(decisions, self.config_revision, self._snapshot_id)[-1]
        except UNSTORABLE:
            for decision in decisions[:-1]:
                try:
                    record_decisions([decision], self.config_revision, self._snapshot_id)
                except UNSTORABLE:
                    policy, ask, *_ = decision.inputs
                    logger.exception("the decision of %s about task %s cannot be stored", policy.name, ask.task_id)
            return record_decisions(decisions[-1:], self.config_revision, self._snapshot_id)[-1]


def store_snapshot(snapshot: GridSnapshot) -> int:
    """Store what a cycle decides on: id of the snapshot. A grid, or links, equal to stored ones are not stored again."""
    parts = packed(snapshot)
    with transaction.atomic():
        grid, links = (_store_part(part) for part in (parts.grid, parts.links))
        stored = StoredSnapshot.objects.create(grid_id=grid, links_id=links, moment=compressed(parts.moment))
    drop_old_snapshots(stored.id)
    return int(stored.id)


def _store_part(part: bytes) -> str:
    digest = hashlib.sha256(part).hexdigest()
    # Locked, so that nobody drops it before the snapshot refers to it.
    if not GridPart.objects.select_for_update().filter(digest=digest).exists():
        GridPart.objects.bulk_create([GridPart(digest=digest, content=compressed(part))], ignore_conflicts=True)
    return digest


def drop_old_snapshots(newest: int) -> None:
    """Delete snapshots that are neither among the newest nor pinned, nor that of the last decision about a task that goes on.

    Looks at what is kept, which does not grow with history.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT s.id FROM brokerage_gridsnapshot s WHERE s.id <= %s AND NOT EXISTS (
                SELECT 1 FROM brokerage_decision d LEFT JOIN workqueues_task t ON t.id = d.task_id AND t.ended_at IS NULL
                WHERE d.snapshot_id = s.id AND (d.pinned OR (t.id IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM brokerage_decision later
                    WHERE later.task_id = d.task_id AND later.id > d.id AND later.policy = d.policy))))
            ORDER BY s.id FOR UPDATE OF s SKIP LOCKED
            """,
            [newest - KEPT_SNAPSHOTS],
        )
        old = [row[0] for row in cursor.fetchall()]
        if old:
            cursor.execute("UPDATE brokerage_decision SET snapshot_id = NULL WHERE snapshot_id = ANY(%s)", [old])
            cursor.execute("DELETE FROM brokerage_gridsnapshot WHERE id = ANY(%s)", [old])
            cursor.execute(
                """
                DELETE FROM brokerage_gridpart WHERE digest IN (
                    SELECT digest FROM brokerage_gridpart p
                    WHERE NOT EXISTS (SELECT 1 FROM brokerage_gridsnapshot s WHERE p.digest IN (s.grid_id, s.links_id))
                    FOR UPDATE OF p SKIP LOCKED)
                """
            )


def pin(decision_ids: Iterable[int], pinned: bool) -> int:
    """Keep the snapshots of these decisions until they are unpinned, or no longer: how many decisions changed."""
    return Decision.objects.filter(id__in=list(decision_ids), pinned=not pinned).update(pinned=pinned)


def record_decisions(decisions: Sequence[TaskDecision[Any]], config_revision: int, snapshot_id: int) -> list[int]:
    """Store decisions of one cycle, in order: their ids; three queries for any number.

    One that is the same as the last of its task and policy, and was asked alike, only raises that one's count and time: its
    reasons are told for both.
    """
    if not decisions:
        return []
    with transaction.atomic():
        last_of = _last_of(decisions)
        counted: dict[int, int] = {}
        fresh: list[Decision] = []
        stored: list[Decision | int] = []
        for decision in decisions:
            place, same, asked = _place(decision), sameness(decision.decision), decision.inputs.ask.to_document()
            last = last_of.get(place)
            if last is None or last[1] != same or not asked_alike(last[2], asked):
                fresh.append(_row(decision, same, config_revision, snapshot_id))
                last = last_of[place] = (fresh[-1], same, asked)
            elif isinstance(last[0], Decision):
                last[0].n_times += 1
            else:
                counted[last[0]] = counted.get(last[0], 0) + 1
            stored.append(last[0])
        Decision.objects.bulk_create(fresh)
        for times in set(counted.values()):
            ids = [id_ for id_, n in counted.items() if n == times]
            Decision.objects.filter(id__in=ids).update(n_times=F("n_times") + times, last_at=Now())
        return [last if isinstance(last, int) else int(last.id) for last in stored]


def _place(decision: TaskDecision[Any]) -> tuple[int, str]:
    return decision.inputs.ask.task_id, decision.decision.policy


def _last_of(decisions: Sequence[TaskDecision[Any]]) -> dict[tuple[int, str], tuple[Decision | int, str, Mapping[str, Any]]]:
    """Task and policy -> id, sameness and ask of its last decision."""
    places = sorted({_place(decision) for decision in decisions})
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT v.task_id, v.policy, last.id, last.sameness, last.ask::text
            FROM unnest(%s::bigint[], %s::text[]) AS v(task_id, policy)
            CROSS JOIN LATERAL (
                SELECT d.id, d.sameness, d.ask FROM brokerage_decision d WHERE d.task_id = v.task_id AND d.policy = v.policy
                ORDER BY d.id DESC LIMIT 1) last
            """,
            [[task_id for task_id, _ in places], [policy for _, policy in places]],
        )
        return {(task_id, policy): (int(id_), same, json.loads(ask)) for task_id, policy, id_, same, ask in cursor}


def _row(task_decision: TaskDecision[Any], same: str, config_revision: int, snapshot_id: int) -> Decision:
    decision, (policy, ask, _, config) = task_decision.decision, task_decision.inputs
    return Decision(
        task_id=ask.task_id,
        policy=decision.policy,
        policy_version=decision.version,
        outcome=decision.outcome,
        n_candidates=len(decision.first),
        n_chosen=len(decision.chosen),
        ask=ask.to_document(),
        record=encode(decision, policy),
        own=task_decision.task_facts.to_bytes(),
        sameness=same,
        config=dict(config),
        config_revision=config_revision,
        seed=decision.seed,
        snapshot_id=snapshot_id,
    )
