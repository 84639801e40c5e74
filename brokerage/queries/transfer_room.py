"""What the agent `transfer` sees of links and endpoints: where something is due, the heads of it, what is under way, and limits.

What is due is read by a loose scan of the index `transfer_due`, so that it costs the same however much is queued.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connection
from django.db.models import F, Q
from django.db.models.functions import Now

from brokerage.models import StorageEndpoint, TransferLink
from brokerage.rules.grid.storage_root import access_left
from brokerage.rules.transfers.room import Active, Waiting, Way, link_limit
from brokerage.states import TRANSFER
from workqueues.models import ShareStanding

_DUE = "status = 'queued' AND next_at IS NULL"

_LINKS = f"""
WITH RECURSIVE link AS (
    (SELECT destination_site, source_site FROM brokerage_transfer WHERE {_DUE} ORDER BY 1, 2 LIMIT 1)
    UNION ALL
    SELECT n.destination_site, n.source_site FROM link l CROSS JOIN LATERAL (
        SELECT t.destination_site, t.source_site FROM brokerage_transfer t
        WHERE {_DUE} AND (t.destination_site, t.source_site) > (l.destination_site, l.source_site)
        ORDER BY 1, 2 LIMIT 1
    ) n
)
SELECT source_site, destination_site FROM link
"""
_HEADS = f"""
WITH RECURSIVE asked AS (
    SELECT * FROM unnest(%s::text[], %s::text[], %s::bool[], %s::int[]) AS a(source_site, destination_site, express, n)
), of_share AS (
    SELECT a.*, f.share FROM asked a CROSS JOIN LATERAL (
        SELECT t.share FROM brokerage_transfer t
        WHERE {_DUE} AND t.destination_site = a.destination_site AND t.source_site = a.source_site AND t.express = a.express
        ORDER BY t.share LIMIT 1
    ) f
    UNION ALL
    SELECT s.source_site, s.destination_site, s.express, s.n, f.share FROM of_share s CROSS JOIN LATERAL (
        SELECT t.share FROM brokerage_transfer t
        WHERE {_DUE} AND t.destination_site = s.destination_site AND t.source_site = s.source_site AND t.express = s.express
            AND t.share > s.share
        ORDER BY t.share LIMIT 1
    ) f
)
SELECT h.id, s.source_site, s.destination_site, s.express, s.share, h.source, h.destination
FROM of_share s CROSS JOIN LATERAL (
    SELECT t.id, t.source, t.destination, t.priority FROM brokerage_transfer t
    WHERE {_DUE} AND t.destination_site = s.destination_site AND t.source_site = s.source_site AND t.express = s.express
        AND t.share = s.share
    ORDER BY t.priority DESC, t.id LIMIT s.n
) h
ORDER BY s.express DESC, s.source_site, s.destination_site, s.share, h.priority DESC, h.id
"""
_ACTIVE = f"""
SELECT source_site, destination_site, express, share, source, destination, count(*) FROM brokerage_transfer
WHERE status IN ({TRANSFER.active.sql}) GROUP BY 1, 2, 3, 4, 5, 6
"""


def due_links() -> list[Way]:
    """The links on which a transfer is due; a source of which no site is known is empty."""
    with connection.cursor() as cursor:
        cursor.execute(_LINKS)
        return [Way(source, to) for source, to in cursor.fetchall()]


def heads(wanted: Mapping[tuple[Way, bool], int]) -> list[Waiting]:
    """The first so many transfers of each share on these links, express or not: by priority, then age."""
    asked = list(wanted.items())
    with connection.cursor() as cursor:
        cursor.execute(
            _HEADS,
            [
                [way.source for (way, _), _ in asked],
                [way.destination for (way, _), _ in asked],
                [express for (_, express), _ in asked],
                [n for _, n in asked],
            ],
        )
        return [
            Waiting(id_, Way(source_site, site), express, share, source, destination)
            for id_, source_site, site, express, share, source, destination in cursor.fetchall()
        ]


def active() -> list[Active]:
    """What is under way."""
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE)
        return [Active(Way(source_site, site), *rest) for source_site, site, *rest in cursor.fetchall()]


def link_limits(default: int) -> Mapping[Way, int]:
    """How many transfers may be under way on the links that have a limit of their own, or half of one since many failed."""
    rows = TransferLink.objects.filter(Q(max_active__isnull=False) | Q(halved_until__gt=Now()))
    halved = Q(halved_until__gt=Now())
    rows = rows.annotate(halved=halved)
    return {
        Way(source, to): link_limit(given, half, default)
        for source, to, given, half in rows.values_list("source_id", "destination_id", "max_active", "halved")
    }


def link_rates() -> Mapping[Way, float]:
    """MB/s of the links that have a limit of it."""
    rows = TransferLink.objects.filter(mb_per_s__isnull=False).values_list("source_id", "destination_id", "mb_per_s")
    return {Way(source, to): rate for source, to, rate in rows if rate is not None}


def closed_destinations() -> Mapping[str, tuple[str, str]]:
    """The storage endpoints to which nothing can be brought now: reason and words."""
    rows = StorageEndpoint.objects.values_list("name", "state", "status", "root_state", "root_fault")
    closed = {name: _closed(*facts) for name, *facts in rows}
    return {name: why for name, why in closed.items() if why}


def _closed(state: str, status: Mapping[str, str], root_state: str, root_fault: str) -> tuple[str, str] | None:
    if state != "ACTIVE":
        return "dst_down", f"its state is {state}"
    if access_left(status, root_state).get("write_wan", "ON") in ("OFF", "TEST"):
        return "dst_full" if root_state == "full" else "dst_down", root_fault or "it is out of service for writing"
    return None


def sites_with_destination(closed: Sequence[str]) -> frozenset[str]:
    """The sites where some endpoint can be written to."""
    return frozenset(StorageEndpoint.objects.exclude(name__in=closed).values_list("site_id", flat=True))


def share_weights() -> Mapping[str, float]:
    """What percentage of all each share is to have, where that is known."""
    return {name: percent for name, percent in ShareStanding.objects.values_list(F("share_id"), "percent") if percent > 0}
