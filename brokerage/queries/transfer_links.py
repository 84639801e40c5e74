"""The links between sites as transfers use them: what is queued, under way and ended on each, and its limits.

Numbers are bounded, so that they cost the same however much is queued; those that reach the bound are lower bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import DEFAULT_DB_ALIAS, connections

from broker_site.foundation.kernel import clock
from brokerage.models import TransferLink
from brokerage.states import TRANSFER

MOST = 10_000
"""Queued transfers of a link that are counted; resting ones of all links together."""
MOST_ENDED = 50_000
"""Transfers that ended in the last hour and are counted, the newest."""
HOUR_S = 3600

_FIGURES = f"""
WITH RECURSIVE link AS (
    (SELECT destination_site, source_site FROM brokerage_transfer
        WHERE status = 'queued' AND next_at IS NULL ORDER BY 1, 2 LIMIT 1)
    UNION ALL
    SELECT further.* FROM link CROSS JOIN LATERAL (
        SELECT t.destination_site, t.source_site FROM brokerage_transfer t
        WHERE t.status = 'queued' AND t.next_at IS NULL
            AND (t.destination_site, t.source_site) > (link.destination_site, link.source_site)
        ORDER BY 1, 2 LIMIT 1) AS further
)
SELECT source_site, destination_site, 'due', '', due.n, due.bytes FROM link CROSS JOIN LATERAL (
    SELECT count(*) AS n, sum(bytes) AS bytes FROM (
        SELECT t.bytes FROM brokerage_transfer t
        WHERE t.status = 'queued' AND t.next_at IS NULL AND t.destination_site = link.destination_site
            AND t.source_site = link.source_site LIMIT %(most)s) AS bounded) AS due
UNION ALL
SELECT source_site, destination_site, 'resting', reason, count(*), sum(bytes) FROM (
    SELECT source_site, destination_site, reason, bytes FROM brokerage_transfer
    WHERE status = 'queued' AND next_at IS NOT NULL ORDER BY next_at LIMIT %(most)s) AS resting GROUP BY 1, 2, 4
UNION ALL
SELECT source_site, destination_site, 'active', '', count(*), sum(bytes) FROM brokerage_transfer
WHERE status IN ({TRANSFER.active.sql}) GROUP BY 1, 2
UNION ALL
SELECT source_site, destination_site, status, reason, count(*), sum(bytes) FROM (
    SELECT source_site, destination_site, status, reason, bytes FROM brokerage_transfer
    WHERE ended_at > now() - make_interval(secs => %(window_s)s) ORDER BY ended_at DESC LIMIT %(most_ended)s) AS ended
GROUP BY 1, 2, 3, 4
"""


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One link. Bytes are those of the transfers beside them; `done`, `failed`, `mb_per_s`: in the last hour.

    `queued` counts those that rest too. `failures`: reason -> transfers that failed with it in the last hour, or rest after it.
    `max_active`: None as configured; `limit_mb_per_s`: None without a limit. `blocked_until`: only while it is blocked.
    """

    source: str
    destination: str
    queued: int = 0
    queued_bytes: int = 0
    resting: int = 0
    active: int = 0
    active_bytes: int = 0
    done: int = 0
    failed: int = 0
    mb_per_s: float = 0.0
    failures: tuple[tuple[str, int], ...] = ()
    max_active: int | None = None
    limit_mb_per_s: float | None = None
    blocked_until: datetime | None = None
    blocked_why: str = ""

    @property
    def bounded(self) -> bool:
        """Whether more may be queued than were counted."""
        return self.queued >= MOST

    @property
    def within(self) -> bool:
        """Whether it leads from a site to itself."""
        return self.source == self.destination


def link_rows(sites: Collection[str] | None = None, using: str = DEFAULT_DB_ALIAS) -> list[LinkRow]:
    """Links with something on them, or with limits; the fullest first. `sites`: only links from or to one of these."""
    found: dict[tuple[str, str], dict[str, tuple[int, int]]] = defaultdict(dict)
    failures: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    with connections[using].cursor() as cursor:
        cursor.execute(_FIGURES, {"most": MOST, "most_ended": MOST_ENDED, "window_s": HOUR_S})
        for source, destination, what, reason, n, size in cursor.fetchall():
            link = source, destination
            before = found[link].get(what, (0, 0))
            found[link][what] = before[0] + n, before[1] + int(size or 0)
            if reason and what in _FAILURES:
                failures[link][reason] += n
    limits = {(link.source_id, link.destination_id): link for link in TransferLink.objects.using(using).all()}
    links = [
        _row(link, found.get(link, {}), failures.get(link, {}), limits.get(link))
        for link in {*found, *limits}
        if sites is None or not set(sites).isdisjoint(link)
    ]
    return sorted(links, key=lambda row: (-row.queued - row.active, row.source, row.destination))


def link_row(source: str, destination: str, using: str = DEFAULT_DB_ALIAS) -> LinkRow:
    """One link, whether anything is on it or not."""
    rows = link_rows({source}, using)
    return next((row for row in rows if (row.source, row.destination) == (source, destination)), LinkRow(source, destination))


_FAILURES = frozenset({"resting", "failed"})


def _row(
    link: tuple[str, str], figures: dict[str, tuple[int, int]], failures: dict[str, int], limits: TransferLink | None
) -> LinkRow:
    (due, due_bytes), (resting, resting_bytes), (active, active_bytes), (done, done_bytes), (failed, _) = (
        figures.get(what, (0, 0)) for what in ("due", "resting", "active", "done", "failed")
    )
    blocked = limits is not None and limits.blocked_until is not None and limits.blocked_until > clock.now()
    return LinkRow(
        *link,
        queued=due + resting,
        queued_bytes=due_bytes + resting_bytes,
        resting=resting,
        active=active,
        active_bytes=active_bytes,
        done=done,
        failed=failed,
        mb_per_s=round(done_bytes / 1e6 / HOUR_S, 3),
        failures=tuple(sorted(failures.items(), key=lambda pair: (-pair[1], pair[0]))),
        max_active=limits.max_active if limits else None,
        limit_mb_per_s=limits.mb_per_s if limits else None,
        blocked_until=limits.blocked_until if limits and blocked else None,
        blocked_why=limits.blocked_why if limits and blocked else "",
    )
