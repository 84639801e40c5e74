"""The snapshot that pages decide on is the same for a moment, and a new one as soon as the grid changes."""

from __future__ import annotations

import pytest
from django.utils import timezone

from brokerage.models import ComputingQueue, QueueStorage
from brokerage.queries import recent_snapshot as kept
from brokerage.queries.recent_snapshot import forget_snapshot, recent_snapshot
from tests.builders import grid

pytestmark = pytest.mark.django_db


def test_a_change_of_the_grid_ends_it_and_what_jobs_do_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    alpha, _ = grid("ALPHA", "BETA")
    forget_snapshot()
    first = recent_snapshot()
    ComputingQueue.objects.filter(id=alpha.id).update(last_start=timezone.now())
    assert recent_snapshot() is first
    ComputingQueue.objects.filter(id=alpha.id).update(maxrss=1234)
    second = recent_snapshot()
    assert second is not first
    assert recent_snapshot() is second
    QueueStorage.objects.filter(queue=alpha, position=1, access="read_lan").delete()
    third = recent_snapshot()
    assert third is not second
    monkeypatch.setattr(kept, "KEPT_S", 0.0)
    forget_snapshot()
    assert recent_snapshot() is not recent_snapshot()
