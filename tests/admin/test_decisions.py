"""Decisions are pinned in the admin: what they were taken on is then kept, however old."""

from __future__ import annotations

import pytest
from django.test import Client

from broker_site.foundation.access.models import Audit
from brokerage.ledger import decisions
from brokerage.models import Decision, StoredSnapshot
from workqueues.models import Task

LIST = "/admin/brokerage/decision/"

pytestmark = pytest.mark.django_db


def snapshots_after_clearing() -> int:
    """How many snapshots stay when nothing is kept for being new."""
    decisions.drop_old_snapshots(
        StoredSnapshot.objects.order_by("-id").values_list("id", flat=True)[0] + decisions.KEPT_SNAPSHOTS
    )
    return StoredSnapshot.objects.count()


def test_a_pinned_decision_keeps_its_snapshot_until_it_is_unpinned(root: Client, worked: Task) -> None:
    first = Decision.objects.order_by("id")[0]
    kept = first.snapshot
    assert kept is not None
    answer = root.post(LIST, {"action": "pin", "_selected_action": [first.id]}, follow=True)
    assert "1 decisions pinned." in answer.content.decode()
    assert Audit.objects.filter(act="decision.pin", after__pinned=True).count() == 1
    Decision.objects.exclude(id=first.id).delete()
    assert snapshots_after_clearing() == 1
    root.post(LIST, {"action": "unpin", "_selected_action": [first.id]})
    Task.objects.filter(id=first.task_id).delete()
    assert Decision.objects.get(id=first.id).pinned is False
    StoredSnapshot.objects.create(grid=kept.grid, links=kept.links, moment=b"")
    decisions.drop_old_snapshots(StoredSnapshot.objects.latest("id").id + decisions.KEPT_SNAPSHOTS)
    assert not StoredSnapshot.objects.filter(id=kept.id).exists()
