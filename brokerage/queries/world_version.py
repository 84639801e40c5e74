"""Which world is read: how often the grid and the configuration were changed before, and when a storage last came or went."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max

from broker_site.foundation import gdpconfig
from brokerage.models import GridRevision, StorageEndpoint
from brokerage.rules.placement.wait_cause import WorldVersion


def world_version(at: datetime) -> WorldVersion:
    """That of the world which is read next, at this time."""
    grid = GridRevision.objects.values_list("number", flat=True).first() or 0
    return WorldVersion(at, grid, gdpconfig.revision(), last_root_change())


def last_root_change() -> datetime | None:
    """When the root of a storage last came or went."""
    changed: datetime | None = StorageEndpoint.objects.aggregate(last=Max("root_since"))["last"]
    return changed
