"""Stored decisions: equal ones in a row are counted, the parts of a snapshot are stored once, old ones go (decision B16)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from brokerage.models import Decision, GridPart, StoredSnapshot
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.pipeline import PolicyDecision
from brokerage.rules.decision.record import encode, sameness
from brokerage.rules.facts.ask import Ask
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import TaskFacts, compressed, packed

KEPT_SNAPSHOTS = 50
"""How many of the newest snapshots are kept whatever refers to them."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One decision to store: `ask` as it was decided on, `config` what was read of the configuration."""

    ask: Ask
    decided: PolicyDecision
    policy: Policy
    config: Mapping[str, Any]
    own: TaskFacts = TaskFacts()  # noqa: RUF009 - frozen


def store_snapshot(world: GridSnapshot) -> int:
    """Store what a cycle decides on: id of the snapshot. A grid, or links, equal to stored ones are not stored again."""
    parts = packed(world)
    with transaction.atomic():
        grid, links = (_store_part(part) for part in (parts.grid, parts.links))
        snapshot = StoredSnapshot.objects.create(grid_id=grid, links_id=links, moment=compressed(parts.moment))
    drop_old_snapshots(snapshot.id)
    return int(snapshot.id)


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


def record_decisions(taken: Sequence[Taken], config_revision: int, snapshot_id: int) -> list[int]:
    """Store decisions of one cycle, in order: their ids; three queries for any number.

    One that is the same as the last of its task and policy only raises that one's count and time.
    """
    if not taken:
        return []
    with transaction.atomic():
        known = _last_of(taken)
        counted: dict[int, int] = {}
        fresh: list[Decision] = []
        found: list[Decision | int] = []
        for one in taken:
            place, same = (one.ask.task_id, one.decided.policy), sameness(one.decided)
            last = known.get(place)
            if last is None or last[1] != same:
                fresh.append(_row(one, same, config_revision, snapshot_id))
                last = known[place] = (fresh[-1], same)
            elif isinstance(last[0], Decision):
                last[0].n_times += 1
            else:
                counted[last[0]] = counted.get(last[0], 0) + 1
            found.append(last[0])
        Decision.objects.bulk_create(fresh)
        for times in set(counted.values()):
            ids = [id_ for id_, n in counted.items() if n == times]
            Decision.objects.filter(id__in=ids).update(n_times=F("n_times") + times, last_at=Now())
        return [last if isinstance(last, int) else int(last.id) for last in found]


def _last_of(taken: Sequence[Taken]) -> dict[tuple[int, str], tuple[Decision | int, str]]:
    """Task and policy -> id and sameness of its last decision."""
    places = sorted({(one.ask.task_id, one.decided.policy) for one in taken})
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT v.task_id, v.policy, last.id, last.sameness FROM unnest(%s::bigint[], %s::text[]) AS v(task_id, policy)
            CROSS JOIN LATERAL (
                SELECT d.id, d.sameness FROM brokerage_decision d WHERE d.task_id = v.task_id AND d.policy = v.policy
                ORDER BY d.id DESC LIMIT 1) last
            """,
            [[task_id for task_id, _ in places], [policy for _, policy in places]],
        )
        return {(task_id, policy): (int(id_), same) for task_id, policy, id_, same in cursor}


def _row(one: Taken, same: str, config_revision: int, snapshot_id: int) -> Decision:
    decided = one.decided
    return Decision(
        task_id=one.ask.task_id,
        policy=decided.policy,
        policy_version=decided.version,
        outcome=decided.outcome,
        n_candidates=len(decided.first),
        n_chosen=len(decided.chosen),
        ask=one.ask.to_document(),
        record=encode(decided, one.policy),
        own=one.own.to_bytes(),
        sameness=same,
        config=dict(one.config),
        config_revision=config_revision,
        seed=decided.seed,
        snapshot_id=snapshot_id,
    )
