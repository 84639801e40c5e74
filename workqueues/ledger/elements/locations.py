"""Where the files of waiting elements are, kept as it was looked up (row W5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from workqueues.ledger.elements.groups import GroupKey, groups
from workqueues.models import Element


def due_elements(limit: int, period_s: float) -> list[Element]:
    """Elements that wait whose places were looked up longest ago, before this period, s."""
    due = Element.objects.filter(status="Available", located_at__lt=Now() - timedelta(seconds=period_s))
    return list(due.select_related("dataset", "task").order_by("located_at")[:limit])


def relocate(element: Element, places: Sequence[str], group: GroupKey, why_waiting: str) -> bool:
    """An element hangs in the group that its places mean: whether it waits as it was read."""
    with transaction.atomic():
        group_id = groups([group])[group]
        waiting = Element.objects.filter(id=element.id, status="Available", epoch=element.epoch)
        columns = {"group_id": group_id, "places": list(places), "why_waiting": why_waiting[:255], "located_at": Now()}
        return waiting.update(**columns) == 1
