"""Counting what our own transfers say of links, and forgetting those that ended long ago.

What is open is counted anew each time; each transfer that ended is counted once, in the hour of its end, so that no count grows
with what moved before. Not here: what the brokerage makes of it (`brokerage.rules.world.own_links`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import connection, transaction

from broker_site.foundation.agency.look import look_after_commit
from brokerage.ledger.waits import grid_changed
from brokerage.rules.grid.measurements import PRODUCTION_OUTPUT

MARGIN_S = 60.0
"""An end is counted so long after it: a transaction that began before may have come to its end since."""
LEAST_BYTES = 100_000_000
"""Less that was brought says nothing of what a link can carry."""

_BEGIN = """
INSERT INTO brokerage_transfercount (id, counted_at, ended_until)
VALUES (1, now() - interval '1 day', now() - make_interval(secs => %s)) ON CONFLICT DO NOTHING
"""
_LOCK = "SELECT counted_at, ended_until FROM brokerage_transfercount WHERE id = 1 FOR UPDATE SKIP LOCKED"
_HOURS = """
WITH ended AS (
    SELECT t.source_site, t.destination_site, date_trunc('hour', t.ended_at) AS hour, count(*) AS files, sum(t.bytes) AS bytes,
        range_agg(tstzrange(least(b.begun, t.ended_at), t.ended_at, '[]')) AS busy
    FROM brokerage_transfer t CROSS JOIN LATERAL (
        SELECT max(at) AS begun FROM brokerage_transferchange c WHERE c.transfer_id = t.id AND c.new = 'submitting') AS b
    WHERE t.ended_at > %(since)s AND t.ended_at <= %(until)s AND t.status = 'done' AND t.attempt > 0
    GROUP BY 1, 2, 3
)
INSERT INTO brokerage_linkhour AS h (source, destination, hour, files, bytes, busy_s)
SELECT source_site, destination_site, hour, files, bytes,
    (SELECT sum(extract(epoch FROM upper(span) - lower(span))) FROM unnest(busy) AS span)
FROM ended
ON CONFLICT (hour, source, destination) DO UPDATE SET
    files = h.files + EXCLUDED.files, bytes = h.bytes + EXCLUDED.bytes, busy_s = h.busy_s + EXCLUDED.busy_s
"""
_OLD_HOURS = "DELETE FROM brokerage_linkhour WHERE hour < now() - interval '8 days'"
_OVER = """
SELECT 'link ' || source || ' to ' || destination FROM brokerage_linkload WHERE files > %(link_cap)s
UNION SELECT 'nucleus ' || destination FROM brokerage_linkload GROUP BY destination
    HAVING sum(files) >= %(nucleus_cap)s
UNION SELECT 'jobs of ' || destination FROM brokerage_linkload GROUP BY destination HAVING sum(files) > %(jobs_cap)s
"""
_LOADS = f"""
WITH rates AS (
    SELECT source, destination, {{rates}} FROM brokerage_linkhour WHERE hour > now() - interval '7 days' GROUP BY 1, 2
), waiting AS (
    SELECT source_site AS source, destination_site AS destination, activity, count(*) AS files, sum(bytes) AS bytes
    FROM brokerage_transfer WHERE ended_at IS NULL AND source_site <> '' GROUP BY 1, 2, 3
), loads AS (
    SELECT source, destination, coalesce(w.activity, '{PRODUCTION_OUTPUT}') AS activity, coalesce(w.files, 0) AS files,
        coalesce(w.bytes, 0) AS bytes, r.mbps_1h, r.mbps_1d, r.mbps_1w
    FROM waiting w FULL JOIN rates r USING (source, destination)
), gone AS (
    DELETE FROM brokerage_linkload l WHERE (source, destination, activity) NOT IN (
        SELECT source, destination, activity FROM loads)
)
INSERT INTO brokerage_linkload AS l (source, destination, activity, files, bytes, mbps_1h, mbps_1d, mbps_1w)
SELECT * FROM loads
ON CONFLICT (source, destination, activity) DO UPDATE SET files = EXCLUDED.files, bytes = EXCLUDED.bytes,
    mbps_1h = EXCLUDED.mbps_1h, mbps_1d = EXCLUDED.mbps_1d, mbps_1w = EXCLUDED.mbps_1w
WHERE (l.files, l.bytes, l.mbps_1h, l.mbps_1d, l.mbps_1w)
    IS DISTINCT FROM (EXCLUDED.files, EXCLUDED.bytes, EXCLUDED.mbps_1h, EXCLUDED.mbps_1d, EXCLUDED.mbps_1w)
"""
_RATE = """
CASE WHEN sum(bytes) FILTER (WHERE hour > {since}) >= %(least)s THEN
    (sum(bytes) FILTER (WHERE hour > {since}) / greatest(sum(busy_s) FILTER (WHERE hour > {since}), 0.001) / 1e6)::float8
END AS {name}
"""
_HOUR = _RATE.format(since="date_trunc('hour', now()) - interval '2 hours'", name="mbps_1h")
_DAY = _RATE.format(since="now() - interval '1 day'", name="mbps_1d")
_WEEK = _RATE.format(since="now() - interval '7 days'", name="mbps_1w")
_COUNT = _LOADS.format(rates=f"{_HOUR}, {_DAY}, {_WEEK}")
_OPENED = """
SELECT EXISTS (SELECT FROM brokerage_transferlink WHERE blocked_until > %s AND blocked_until <= now())
"""
_FORGET = """
WITH old AS (
    SELECT id FROM brokerage_transfer
    WHERE ended_at < now() - make_interval(secs => %(keep_s)s)
        AND ended_at <= (SELECT ended_until FROM brokerage_transfercount)
    ORDER BY ended_at LIMIT %(most)s FOR UPDATE SKIP LOCKED
), wishes AS (
    DELETE FROM brokerage_transferwish w USING old WHERE w.transfer_id = old.id
), changes AS (
    DELETE FROM brokerage_transferchange c USING old WHERE c.transfer_id = old.id
)
DELETE FROM brokerage_transfer t USING old WHERE t.id = old.id
"""


class Caps(NamedTuple):
    """Files from which on a link or nucleus is left out by the brokers."""

    link: int
    nucleus: int
    jobs: int


def count_links(keep_s: float, caps: Caps) -> int | None:
    """Count what waits and how fast it goes: links with figures. None where another run counts now.

    Where a link or nucleus is over its cap no more, or a block ended, tasks that wait for a place are judged anew.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_BEGIN, [keep_s])
        cursor.execute(_LOCK)
        count = cursor.fetchone()
        if count is None:
            return None
        _count_hours(cursor, count[1])
        over = _over(cursor, caps)
        cursor.execute(_COUNT, {"least": LEAST_BYTES})
        cursor.execute(_OPENED, [count[0]])
        (opened,) = cursor.fetchone()
        if opened or over - _over(cursor, caps):
            grid_changed()
            look_after_commit("free")
        cursor.execute("UPDATE brokerage_transfercount SET counted_at = now() WHERE id = 1")
        cursor.execute("SELECT count(*) FROM brokerage_linkload")
        return int(cursor.fetchone()[0])


def _count_hours(cursor: Any, since: Any) -> None:
    cursor.execute("SELECT now() - make_interval(secs => %s)", [MARGIN_S])
    (until,) = cursor.fetchone()
    if until > since:
        cursor.execute(_HOURS, {"since": since, "until": until})
        cursor.execute("UPDATE brokerage_transfercount SET ended_until = %s WHERE id = 1", [until])
    cursor.execute(_OLD_HOURS)


def _over(cursor: Any, caps: Caps) -> set[str]:
    values: Mapping[str, int] = {"link_cap": caps.link, "nucleus_cap": caps.nucleus, "jobs_cap": caps.jobs}
    cursor.execute(_OVER, values)
    return {what for (what,) in cursor.fetchall()}


def forget_ended(keep_s: float, most: int) -> int:
    """Remove transfers that ended so long ago, with their history and wishes: how many. None that the hours do not have."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_FORGET, {"keep_s": keep_s, "most": most})
        return int(cursor.rowcount)
