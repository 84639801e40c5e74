"""The links between sites as transfers use them: what is queued, under way and ended on each, and its limits.

Numbers are bounded, so that they cost the same however much is queued; those that reach the bound are lower bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel import clock
from brokerage.models import TransferLink
from brokerage.rules.transfers.room import link_limit
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
    `max_active`: of the link's own, None as configured; `most_active`: in force, by the agent's rule; `halved_until`: only while
    failures halve it; `attempts_done`, `attempts_failed`: those by which it is judged. `limit_mb_per_s`: None without a limit.
    `blocked_until`: only while it is blocked. `load_files`, `load_bytes`, `mbps_1h`, `mbps_1d`: the figures that brokerage reads.
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
    most_active: int = 0
    halved_until: datetime | None = None
    attempts_done: int = 0
    attempts_failed: int = 0
    limit_mb_per_s: float | None = None
    blocked_until: datetime | None = None
    blocked_why: str = ""
    load_files: int = 0
    load_bytes: int = 0
    mbps_1h: float | None = None
    mbps_1d: float | None = None

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
    limits, loads = _limits_and_loads(using)
    links = [
        _row(link, found.get(link, {}), failures.get(link, {}), limits.get(link), loads.get(link, _NO_LOAD))
        for link in {*found, *limits, *(link for link, load in loads.items() if load.load_files)}
        if sites is None or not set(sites).isdisjoint(link)
    ]
    return sorted(links, key=lambda row: (-row.queued - row.active, row.source, row.destination))


def link_row(source: str, destination: str, using: str = DEFAULT_DB_ALIAS) -> LinkRow:
    """One link, whether anything is on it or not."""
    link = source, destination
    rows = link_rows({source}, using)
    known = next((row for row in rows if (row.source, row.destination) == link), None)
    return known or _row(link, {}, {}, None, _limits_and_loads(using)[1].get(link, _NO_LOAD))


_Link = tuple[str, str]
"""Source and destination."""


class _Load(NamedTuple):
    """Own figures of a link."""

    load_files: int = 0
    load_bytes: int = 0
    mbps_1h: float | None = None
    mbps_1d: float | None = None


_NO_LOAD = _Load()
_FAILURES = frozenset({"resting", "failed"})


_OWN = (
    "max_active", "mb_per_s", "halved_until", "blocked_until", "blocked_why", "counted_since", "n_done", "n_failed",
)  # fmt: skip
"""Columns of TransferLink that a row tells."""
_LIMITS_AND_LOADS = f"""
SELECT coalesce(l.source_id, d.source), coalesce(l.destination_id, d.destination), l.id, d.files, d.bytes, d.hour, d.day,
    {", ".join(f"l.{name}" for name in _OWN)}
FROM brokerage_transferlink l FULL JOIN (
    SELECT source, destination, sum(files)::bigint AS files, sum(bytes)::bigint AS bytes, max(mbps_1h) AS hour,
        max(mbps_1d) AS day
    FROM brokerage_linkload GROUP BY 1, 2
) AS d ON d.source = l.source_id AND d.destination = l.destination_id
"""


def _limits_and_loads(using: str) -> tuple[Mapping[_Link, TransferLink], Mapping[_Link, _Load]]:
    """Limits of links, and own figures of all: open files of all activities together; the rates are the link's, the same for each
    activity. One statement.
    """
    limits: dict[_Link, TransferLink] = {}
    loads: dict[_Link, _Load] = {}
    with connections[using].cursor() as cursor:
        cursor.execute(_LIMITS_AND_LOADS)
        for source, destination, id_, files, size, hour, day, *own in cursor.fetchall():
            if id_ is not None:
                limits[source, destination] = TransferLink(**dict(zip(_OWN, own, strict=True)))
            if files is not None:
                loads[source, destination] = _Load(files, size, hour, day)
    return limits, loads


def _row(
    link: tuple[str, str],
    figures: dict[str, tuple[int, int]],
    failures: dict[str, int],
    limits: TransferLink | None,
    load: _Load,
) -> LinkRow:
    (due, due_bytes), (resting, resting_bytes), (active, active_bytes), (done, done_bytes), (failed, _) = (
        figures.get(what, (0, 0)) for what in ("due", "resting", "active", "done", "failed")
    )
    source, destination = link
    return LinkRow(
        source,
        destination,
        queued=due + resting,
        queued_bytes=due_bytes + resting_bytes,
        resting=resting,
        active=active,
        active_bytes=active_bytes,
        done=done,
        failed=failed,
        mb_per_s=round(done_bytes / 1e6 / HOUR_S, 3),
        failures=tuple(sorted(failures.items(), key=lambda pair: (-pair[1], pair[0]))),
        load_files=load.load_files,
        load_bytes=load.load_bytes,
        mbps_1h=load.mbps_1h,
        mbps_1d=load.mbps_1d,
        **_said(limits or TransferLink()),
    )


def _said(link: TransferLink) -> dict[str, Any]:
    """Limits in force on a link, and what became of the attempts by which it is judged."""
    now, config = clock.now(), gdpconfig.component("transfers")
    halved, blocked = (until is not None and until > now for until in (link.halved_until, link.blocked_until))
    counted = link.counted_since is not None and link.counted_since > now - timedelta(seconds=config["LINK_WINDOW"])
    return {
        "max_active": link.max_active,
        "most_active": link_limit(link.max_active, halved, config["LINK_ACTIVE"]),
        "halved_until": link.halved_until if halved else None,
        "attempts_done": link.n_done if counted else 0,
        "attempts_failed": link.n_failed if counted else 0,
        "limit_mb_per_s": link.mb_per_s,
        "blocked_until": link.blocked_until if blocked else None,
        "blocked_why": link.blocked_why if blocked else "",
    }
