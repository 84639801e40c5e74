"""Stored decisions: equal ones in a row are counted, a snapshot is stored once, old snapshots go (decision B16)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from brokerage.models import Decision, GridSnapshot
from brokerage.rules.ask import Ask
from brokerage.rules.columns import Columns
from brokerage.rules.decision_record import decode, encode, same
from brokerage.rules.declare import Policy
from brokerage.rules.pipeline import Decision as Decided

KEPT_SNAPSHOTS = 50
"""How many of the newest snapshots are kept whatever refers to them."""


def store_snapshot(columns: Columns) -> int:
    """Store the columns a cycle decides on: id of the snapshot; the same columns are stored once."""
    packed = columns.to_bytes()
    digest = hashlib.sha256(packed).hexdigest()
    known = GridSnapshot.objects.filter(digest=digest).order_by("-id").values_list("id", flat=True).first()
    if known is not None:
        return int(known)
    snapshot = GridSnapshot.objects.create(columns=packed, digest=digest)
    drop_old_snapshots(snapshot.id)
    return int(snapshot.id)


def drop_old_snapshots(newest: int) -> None:
    """Delete snapshots that are neither among the newest nor needed to explain a decision about a task that has not ended.

    Looks at what is kept, which does not grow with history.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT s.id FROM brokerage_gridsnapshot s WHERE s.id <= %s AND NOT EXISTS (
                SELECT 1 FROM brokerage_decision d JOIN workqueues_task t ON t.id = d.task_id
                WHERE d.snapshot_id = s.id AND t.ended_at IS NULL)
            ORDER BY s.id FOR UPDATE OF s SKIP LOCKED
            """,
            [newest - KEPT_SNAPSHOTS],
        )
        old = [row[0] for row in cursor.fetchall()]
        cursor.execute("UPDATE brokerage_decision SET snapshot_id = NULL WHERE snapshot_id = ANY(%s)", [old])
        cursor.execute("DELETE FROM brokerage_gridsnapshot WHERE id = ANY(%s)", [old])


def record_decision(
    ask: Ask, decided: Decided, policy: Policy, config: Mapping[str, Any], config_revision: int, snapshot_id: int
) -> int:
    """Store a decision: its id. One that is the same as the task's last only raises that one's count and time."""
    with transaction.atomic():
        last = Decision.objects.select_for_update().filter(task_id=ask.task_id, policy=decided.policy).order_by("-id").first()
        if last is not None and same(decode(bytes(last.record)).decision, decided):
            Decision.objects.filter(id=last.id).update(n_times=F("n_times") + 1, last_at=Now())
            return int(last.id)
        return int(
            Decision.objects.create(
                task_id=ask.task_id,
                policy=decided.policy,
                policy_version=decided.version,
                outcome=decided.outcome,
                n_candidates=len(decided.first),
                n_chosen=len(decided.chosen),
                ask=ask.to_document(),
                record=encode(decided, policy),
                config=dict(config),
                config_revision=config_revision,
                seed=decided.seed,
                snapshot_id=snapshot_id,
            ).id
        )
