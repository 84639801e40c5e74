"""Stored decisions: equal ones in a row are counted, a snapshot is stored once, old snapshots go (decision B16)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from brokerage.models import Decision, GridSnapshot
from brokerage.rules.ask import Ask
from brokerage.rules.columns import Columns
from brokerage.rules.decision_record import decode, encode, same
from brokerage.rules.declare import Policy
from brokerage.rules.pipeline import Decision as Decided

KEPT_SNAPSHOTS = 50
"""Snapshots that are kept beyond the newest decision of each task."""


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
    """Delete snapshots that are neither among the newest nor the one of a task's last decision."""
    old = GridSnapshot.objects.filter(id__lte=newest - KEPT_SNAPSHOTS).exclude(
        id__in=Decision.objects.order_by("task_id", "-id").distinct("task_id").values("snapshot_id")
    )
    Decision.objects.filter(snapshot__in=old).update(snapshot=None)
    old.delete()


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
