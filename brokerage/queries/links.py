"""What is known of the way from one site to another: told by documents and feeds, counted of our own transfers, and blocked."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, Q
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from brokerage.models import Link, LinkLoad, TransferCount, TransferLink
from brokerage.rules.grid.measurements import WINDOWS
from brokerage.rules.world.own_links import join_links

MBPS = tuple(f"mbps_{window}" for window in WINDOWS)
OLDEST = timedelta(hours=1)
"""Our own counts are not used where none was made for so long."""
DIGITS = 3
"""To which a throughput is told, so that what is stored of a moment changes seldom."""


def load_links(sites: Container[str], now: datetime) -> tuple[Mapping[str, Any], ...]:
    """The links between these sites as the brokers take them."""
    source = gdpconfig.value("transfers", "LINK_BACKLOG_SOURCE")
    return join_links(_told(), _own(sites) if source != "feed" else (), blocked_links(), source, now)


def blocked_links() -> dict[tuple[str, str], str]:
    """Links on which nothing begins now because of failures or of operators, with the reason."""
    shut = TransferLink.objects.filter(Q(blocked_until__gt=Now()) | Q(max_active=0))
    return {
        (source, to): why or f"no transfers are let from {source} to {to}"
        for source, to, why in shut.values_list("source_id", "destination_id", "blocked_why")
    }


def _told() -> Iterator[dict[str, Any]]:
    """What documents and feeds tell; how old a figure may be is for the rules."""
    rows = Link.objects.order_by("source_id", "destination_id", "activity")
    columns = ("source_id", "destination_id", "activity", "files_queued", *MBPS, "closeness", "measured_at")
    for source, to, activity, files, *mbps, closeness, at in rows.values_list(*columns):
        yield _entry(source, to, activity, files, mbps) | {"closeness": closeness, "at": at}


def _own(sites: Container[str]) -> Iterator[dict[str, Any]]:
    """Our own counts; none where the last one is too long ago."""
    counted = TransferCount.objects.filter(counted_at__gte=Now() - OLDEST)
    rows = LinkLoad.objects.filter(Exists(counted)).order_by("source", "destination", "activity")
    for source, to, activity, files, *mbps in rows.values_list("source", "destination", "activity", "files", *MBPS):
        if source in sites and to in sites:
            yield _entry(source, to, activity, files, [value and float(f"{value:.{DIGITS}g}") for value in mbps])


def _entry(source: str, to: str, activity: str, files: int, mbps: list[float | None]) -> dict[str, Any]:
    known = {window: value for window, value in zip(WINDOWS, mbps, strict=True) if value is not None}
    return {"from": source, "to": to, "activity": activity, "files_queued": files, "mbps": known}
