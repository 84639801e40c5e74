"""What sites advertise is noted, and the room that follows from it given out (rows S1, S2; decision H8).

Room is taken in blocks of at most BLOCK matches, so that the row of a site is written once for many matches; what a process does
not use it hands back after SITE_BLOCK_LIFE. A block that nobody hands back counts as matched until a count is newer than it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from broker_site.foundation.sql.prepared import Call, Prepared, run_together
from brokerage.ledger.waits import grid_changed
from brokerage.models import Site, SiteAdvertisement
from brokerage.rules.dispatch.site_limits import Advertisement, advertised, time_fault

BLOCK = 10
"""Most matches of a block."""
LATE_S = 10.0
"""So long after the life of a block a match that it allowed may still be made."""

# The commit does not wait for the disk: the lease of each match does, and what was committed before is on the disk by then too.
_TAKE = Prepared(
    "take_room",
    "text, int, float8, bigint",
    """
    WITH site AS MATERIALIZED (
        SELECT site_id, number, CASE WHEN counted_at >= now() - make_interval(secs => $3)
            THEN least($2, least(coalesce(max_jobs, 0) - current_jobs,
                coalesce(max_submitting_jobs, 0) - current_submitting_jobs) - matched) ELSE 0 END AS n
        FROM (SELECT set_config('synchronous_commit', 'off', true) AS commit) AS quick, brokerage_siteadvertisement a
        WHERE site_id = $1 AND quick.commit = 'off'
        FOR NO KEY UPDATE OF a
    ), closed AS (
        UPDATE brokerage_roomblock b SET used = coalesce(b.used, b.n), closed_at = coalesce(b.closed_at, now())
        FROM site WHERE b.id = $4 AND b.site_id = site.site_id
    ), given AS (
        UPDATE brokerage_siteadvertisement a SET matched = a.matched + site.n
        FROM site WHERE a.site_id = site.site_id AND site.n > 0
    )
    INSERT INTO brokerage_roomblock (site_id, number, n) SELECT site_id, number, n FROM site WHERE n > 0 RETURNING id, n
    """,
)
"""A block of up to $2 matches in place of the block $4, which is used up (0: of none)."""
# The site's row first, as in `advertise`: two that wait for each other would wait for ever.
_HAND_BACK = Prepared(
    "hand_room_back",
    "bigint, text, int",
    """
    WITH site AS MATERIALIZED (
        SELECT site_id, number FROM brokerage_siteadvertisement WHERE site_id = $2 FOR NO KEY UPDATE
    ), block AS MATERIALIZED (
        SELECT b.id, b.number, coalesce(b.used, b.n)::int AS was, least($3, coalesce(b.used, b.n)) AS unused
        FROM site JOIN brokerage_roomblock b ON b.site_id = site.site_id WHERE b.id = $1 FOR NO KEY UPDATE OF b
    ), noted AS (
        UPDATE brokerage_roomblock b SET used = block.was - block.unused, closed_at = coalesce(b.closed_at, now())
        FROM block WHERE b.id = block.id AND block.was > block.unused
    ), gone AS (
        DELETE FROM brokerage_roomblock b USING block WHERE b.id = block.id AND block.was = block.unused
    )
    UPDATE brokerage_siteadvertisement a SET matched = greatest(0, a.matched - block.unused)
    FROM site, block WHERE a.site_id = site.site_id AND block.number = site.number AND block.unused > 0
    """,
)
# Of a block that is not handed back the last match may yet come.
_CARRY = """
WITH newer AS (
    UPDATE brokerage_roomblock SET number = %(number)s
    WHERE site_id = %(site)s AND coalesce(closed_at, taken_at + make_interval(secs => %(open_s)s)) > %(known)s
    RETURNING coalesce(used, n) AS n
), gone AS (
    DELETE FROM brokerage_roomblock
    WHERE site_id = %(site)s AND coalesce(closed_at, taken_at + make_interval(secs => %(open_s)s)) <= %(known)s
)
SELECT coalesce(sum(n), 0)::int FROM newer
"""


@dataclass(frozen=True, slots=True)
class SiteCount:
    """What a site says of itself: its numbers, the stations it offers, and when it counted."""

    ad: Advertisement
    counted_at: datetime
    stations: tuple[str, ...] = ()
    kind: str = "native"


class RefusedAdvertisement(ValueError):
    """An advertisement that is not taken, by the time of its count; `stale`: a newer one is there."""

    def __init__(self, why: str, *, stale: bool) -> None:
        super().__init__(why)
        self.stale = stale


class Block(NamedTuple):
    """Room that was taken: so many matches."""

    id: int
    n: int


@transaction.atomic
def advertise(site: str, count: SiteCount, sent_by: str) -> None:
    """Note what a site says; jobs that it got after its count stay counted. The same once more changes nothing.

    Raises RefusedAdvertisement, and Site.DoesNotExist.
    """
    now = Site.objects.select_for_update(no_key=True).annotate(now=Now()).values_list("now", flat=True).get(name=site)
    last = SiteAdvertisement.objects.select_for_update(no_key=True).filter(site_id=site).first()
    if last is not None and _said_before(last, count):
        return
    tolerance_s = gdpconfig.value("dispatch", "SITE_CLOCK_ERROR")
    last_s = last.counted_at.timestamp() if last else None
    if fault := time_fault(count.counted_at.timestamp(), last_s, now.timestamp(), tolerance_s):
        raise RefusedAdvertisement(fault, stale=last_s is not None and count.counted_at.timestamp() <= last_s)
    number = last.number + 1 if last else 1
    state = advertised(count.ad, _newer_matches(site, number, count.counted_at, tolerance_s))
    SiteAdvertisement.objects.update_or_create(
        site_id=site,
        defaults={
            **_columns(count),
            "number": number,
            "arrived_at": now,
            "sent_by": sent_by[:128],
            "matched": state.matched,
        },
    )
    if count.stations != (tuple(last.stations) if last else ()):
        grid_changed()  # tasks wait for a site that offers a station


def take_room(site: str, n: int, max_age_s: float, before: Sequence[Call] = (), used_up: int = 0) -> Block | None:
    """Up to `n` matches of the room of a site; None: there is none. `before`: what is done in the same round trip.

    `used_up`: a block of which all matches were made, which is closed whether there is room or not.
    """
    rows = run_together([*before, _TAKE.with_values(site, min(n, BLOCK), max_age_s, used_up)])
    return Block(*rows[0]) if rows else None


def handing_back(block: int, site: str, unused: int) -> Call:
    """To hand a block back of which so many matches were not made; again for more that were not."""
    return _HAND_BACK.with_values(block, site, unused)


def _columns(count: SiteCount) -> dict[str, object]:
    ad = count.ad
    return {
        "counted_at": count.counted_at,
        "max_jobs": ad.max_jobs,
        "max_submitting_jobs": ad.max_submitting_jobs,
        "current_jobs": ad.current_jobs or 0,
        "current_submitting_jobs": ad.current_submitting_jobs or 0,
        "stations": list(count.stations),
        "kind": count.kind,
    }


def _said_before(last: SiteAdvertisement, count: SiteCount) -> bool:
    return all(getattr(last, name) == value for name, value in _columns(count).items())


def _newer_matches(site: str, number: int, counted_at: datetime, tolerance_s: float) -> int:
    """Matches that a count cannot know; their blocks become blocks of the advertisement with this number."""
    open_s = gdpconfig.value("dispatch", "SITE_BLOCK_LIFE") + LATE_S
    known = counted_at - timedelta(seconds=tolerance_s)
    with connection.cursor() as cursor:
        cursor.execute(_CARRY, {"site": site, "number": number, "open_s": open_s, "known": known})
        return int(cursor.fetchone()[0])
