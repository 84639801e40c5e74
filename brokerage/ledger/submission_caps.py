"""What sites still take of jobs that are submitted: by their advertisements (decision H8), and by running limits (facts a6).

Counted under locks, exact. The same rows stand for matches of pilots that ask: until the caller's transaction ends nobody takes
room, or passes a limit, at these sites, and what was submitted counts there with it. Limits on computing elements and delays
between matches are of pilots alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from django.db import connection

from brokerage.ledger.match_limits import LIMITS
from brokerage.queries.site_limits import max_age_s
from brokerage.rules.dispatch.match_limits import Limited
from brokerage.rules.submission.site_caps import Cap, JobValue, caps_on

_ROOM = """
SELECT site_id, CASE WHEN counted_at < now() - make_interval(secs => %s) THEN 0 ELSE greatest(0, least(
    coalesce(max_jobs, 0) - current_jobs, coalesce(max_submitting_jobs, 0) - current_submitting_jobs) - matched) END
FROM brokerage_siteadvertisement WHERE site_id = ANY (%s) ORDER BY site_id FOR NO KEY UPDATE
"""
_TAKEN = """
WITH taken AS (
    UPDATE brokerage_siteadvertisement a SET matched = a.matched + v.n FROM unnest(%s::text[], %s::int[]) AS v(site, n)
    WHERE a.site_id = v.site RETURNING a.site_id, a.number, v.n
)
INSERT INTO brokerage_roomblock (site_id, number, n, used, closed_at) SELECT site_id, number, n, n, now() FROM taken
"""


def site_caps(sites: Collection[str]) -> dict[Cap, int]:
    """What these sites still take, locked until the caller's transaction ends."""
    caps: dict[Cap, int] = {}
    with connection.cursor() as cursor:
        cursor.execute(_ROOM, [max_age_s(), sorted(sites)])
        caps |= {Cap(site): room for site, room in cursor.fetchall()}
    for site in sorted(sites):
        caps |= {Cap(site, on.attribute, on.value): left for on, left in LIMITS.left(site).items()}
    return caps


def note_submitted(caps: Mapping[Cap, int], jobs: Iterable[tuple[str, Collection[JobValue]]]) -> None:
    """So many jobs, each with its site and its values, were submitted under these caps, in the same transaction."""
    used = Counter(cap for site, values in jobs for cap in caps_on(caps, site, values))
    if advertised := {cap.site: n for cap, n in used.items() if not cap.attribute}:
        with connection.cursor() as cursor:
            cursor.execute(_TAKEN, [list(advertised), list(advertised.values())])
    for site in sorted({cap.site for cap in used if cap.attribute}):
        LIMITS.submitted(
            site, {Limited(cap.attribute, cap.value): n for cap, n in used.items() if cap.site == site and cap.attribute}
        )
