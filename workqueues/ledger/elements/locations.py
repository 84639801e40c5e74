"""Where the files of waiting elements are, kept as it was looked up (row W5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Now

from workqueues.ledger.elements.groups import GroupKey, groups
from workqueues.models import Element


def due_elements(limit: int, period_s: float) -> list[Element]:
    """Elements that wait and hang in no group, as children gave them back; whose rest since then is over; and whose places were
    looked up longest ago, before this period, s. Each with `rests`: whether it rests.
    """
    waiting = Element.objects.filter(status="Available")
    due = [
        *waiting.filter(group_id=None).order_by("id").values_list("id", flat=True)[:limit],
        *waiting.filter(rests_until__lte=Now()).order_by("rests_until").values_list("id", flat=True)[:limit],
        *waiting.filter(located_at__lt=Now() - timedelta(seconds=period_s))
        .order_by("located_at")
        .values_list("id", flat=True)[:limit],
    ]
    chosen = waiting.filter(id__in=list(dict.fromkeys(due))[:limit])
    resting = chosen.annotate(rests=Case(When(Q(rests_until__gt=Now()), then=Value(True)), default=Value(False)))
    return list(resting.select_related("dataset", "task", "returned_by").order_by("located_at"))


def relocate(element: Element, places: Sequence[str], group: GroupKey, why_waiting: str, *, rests: bool = False) -> bool:
    """An element hangs in the group that its places mean: whether it waits as it was read. `rests`: it does so on."""
    with transaction.atomic():
        group_id = groups([group])[group]
        waiting = Element.objects.filter(id=element.id, status="Available", epoch=element.epoch)
        columns = {"group_id": group_id, "places": list(places), "why_waiting": why_waiting[:255], "located_at": Now()}
        return waiting.update(**columns, rests_until=F("rests_until") if rests else None) == 1
