"""The copies of the backend `local`: rows that the agent `transfer` orders, movers carry out, and the agent removes when seen.

A row is claimed by one mover at a time, for a while that the mover renews. Not here: the copying (`brokerage.mover`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from broker_site.foundation.sql.prepared import Prepared

_ORDER = Prepared(
    "order_local_copies",
    "text[], text[], text[], text[], text[], bigint[], text[], float8[], int[]",
    """
    INSERT INTO brokerage_localcopy (key, source_id, source_path, destination_id, destination_path, bytes, checksum, mb_per_s,
        urgency, status, cancelled, reason, message, copied, mover, created_at)
    SELECT g.key::uuid, g.source, g.source_path, g.destination, g.destination_path, g.bytes, g.checksum, g.mb_per_s, g.urgency,
        'waiting', false, '', '', 0, '', now()
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
        AS g(key, source, source_path, destination, destination_path, bytes, checksum, mb_per_s, urgency)
    ON CONFLICT (key) DO NOTHING
    """,
)
_FIND = "SELECT key, status, reason, message, copied FROM brokerage_localcopy WHERE key = ANY(%s::uuid[])"
_ENDED = Prepared(
    "ended_local_copies",
    "int",
    """
    SELECT key, status, reason, message, copied FROM brokerage_localcopy WHERE ended_at IS NOT NULL ORDER BY ended_at LIMIT $1
    """,
)
_CANCEL = "UPDATE brokerage_localcopy SET cancelled = true WHERE key = ANY(%s::uuid[]) AND ended_at IS NULL"
_FORGET = Prepared(
    "forget_local_copies",
    "text[]",
    """
    DELETE FROM brokerage_localcopy c USING unnest($1::uuid[]) AS g(key) WHERE c.key = g.key AND c.ended_at IS NOT NULL
    """,
)
_CLAIM = Prepared(
    "claim_local_copies",
    "text, float8, int, int, float8, text[], text[], int[]",
    """
    WITH head AS (
        SELECT c.key, c.urgency, c.created_at, coalesce(r.room, $3) AS room,
            row_number() OVER ahead AS number, sum(c.bytes) OVER ahead AS size
        FROM brokerage_localcopy c LEFT JOIN unnest($6, $7, $8) AS r(source, destination, room)
            ON r.source = c.source_id AND r.destination = c.destination_id
        WHERE c.status = 'waiting' OR (c.status = 'copying' AND c.claimed_until < now())
        WINDOW ahead AS (PARTITION BY c.source_id, c.destination_id ORDER BY c.urgency DESC, c.created_at, c.key)
    ), wanted AS (
        SELECT coalesce(array_agg(h.key), '{}') AS keys FROM head h
        WHERE h.number <= h.room AND (h.number <= $4 OR h.size <= $5)
    ), mine AS (
        SELECT c.key FROM brokerage_localcopy c
        WHERE c.key = ANY((SELECT w.keys FROM wanted w)::uuid[])
            AND (c.status = 'waiting' OR (c.status = 'copying' AND c.claimed_until < now()))
        ORDER BY c.urgency DESC, c.created_at, c.key FOR NO KEY UPDATE SKIP LOCKED
    ), claimed AS (
        UPDATE brokerage_localcopy c SET status = 'copying', mover = $1, claimed_until = now() + make_interval(secs => $2)
        FROM mine WHERE c.key = mine.key
        RETURNING c.key, c.source_id, c.source_path, c.destination_id, c.destination_path, c.bytes, c.checksum, c.mb_per_s,
            c.urgency, c.created_at, c.cancelled
    )
    SELECT c.key, s.name, s.path, s.mark, s.url, s.key_number, s.site_id, c.source_path,
        d.name, d.path, d.mark, d.url, d.key_number, d.site_id, c.destination_path, c.bytes, c.checksum, c.mb_per_s, c.cancelled
    FROM claimed c JOIN brokerage_storageendpoint s ON s.name = c.source_id
        JOIN brokerage_storageendpoint d ON d.name = c.destination_id
    ORDER BY c.urgency DESC, c.created_at, c.key
    """,
)
_RENEW = Prepared(
    "renew_local_copies",
    "text, float8, text[], bigint[]",
    """
    UPDATE brokerage_localcopy c SET claimed_until = now() + make_interval(secs => $2), copied = g.copied
    FROM unnest($3::uuid[], $4) AS g(key, copied) WHERE c.key = g.key AND c.mover = $1 AND c.status = 'copying' RETURNING c.key
    """,
)
_GIVEN_UP = Prepared(
    "given_up_local_copies",
    "text, text[]",
    "SELECT key FROM brokerage_localcopy WHERE key = ANY($2::uuid[]) AND (cancelled OR mover <> $1)",
)
_END = Prepared(
    "end_local_copies",
    "text, text[], bool[], text[], text[]",
    """
    UPDATE brokerage_localcopy c SET status = CASE WHEN g.good THEN 'done' ELSE 'failed' END, ended_at = now(),
        claimed_until = NULL, reason = g.reason, message = left(g.message, 500),
        copied = CASE WHEN g.good THEN c.bytes ELSE c.copied END
    FROM unnest($2::uuid[], $3, $4, $5) AS g(key, good, reason, message)
    WHERE c.key = g.key AND c.mover = $1 AND c.status = 'copying' RETURNING c.key
    """,
)
_PUT_BACK = Prepared(
    "put_back_local_copies",
    "text",
    "UPDATE brokerage_localcopy SET status = 'waiting', mover = '', claimed_until = NULL WHERE mover = $1 AND status = 'copying'",
)


class CopyRow(NamedTuple):
    """How a copy is: waiting, copying, done, failed."""

    key: UUID
    status: str
    reason: str
    message: str
    copied: int


class Endpoint(NamedTuple):
    """A storage endpoint as a mover reaches it: its directory and address, each empty where there is none."""

    name: str
    path: str
    mark: str
    url: str
    key_number: int
    site: str


class ClaimedCopy(NamedTuple):
    """A copy that a mover has to make, or, where it was cancelled, whose rest it has to remove."""

    key: UUID
    source: Endpoint
    source_path: str
    destination: Endpoint
    destination_path: str
    bytes: int
    checksum: str
    mb_per_s: float | None
    cancelled: bool


class CopyEnd(NamedTuple):
    """How a copy ended; without a reason well."""

    key: UUID
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """How much a mover takes: for each pair of endpoints `room`, or what `rooms` says; beyond `streams` copies only while their
    bytes together are below `size`, so that a small file does not wait behind large ones which another mover could copy.
    """

    seconds: float
    room: int
    streams: int
    size: float


def order_copies(orders: Sequence[tuple[Any, ...]]) -> None:
    """Write copies down that are to be made (columns as in `_ORDER`); one whose key is known stays as it is."""
    if orders:
        _ORDER.run(*map(list, zip(*orders, strict=True)))


def find_copies(keys: Collection[UUID]) -> list[CopyRow]:
    """How these copies are; those that are not known are missing."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [[str(key) for key in keys]])
        return [CopyRow(*row) for row in cursor.fetchall()]


def ended_copies(most: int) -> list[CopyRow]:
    """Those that ended and were not forgotten, oldest first."""
    return [CopyRow(*row) for row in _ENDED.run(most)]


def cancel_copies(keys: Collection[UUID]) -> None:
    """Let the mover give these up."""
    with connection.cursor() as cursor:
        cursor.execute(_CANCEL, [[str(key) for key in keys]])


def forget_copies(keys: Collection[UUID]) -> None:
    """Remove the rows of copies that ended."""
    if keys:
        _FORGET.run([str(key) for key in keys])


def claim_copies(mover: str, claim: Claim, rooms: Sequence[tuple[str, str, int]]) -> list[ClaimedCopy]:
    """Take copies that nobody makes, the most urgent of each pair of endpoints first. `rooms`: source, destination, how many."""
    sources, destinations, counts = map(list, zip(*rooms, strict=True)) if rooms else ([], [], [])
    rows = _CLAIM.run(mover, claim.seconds, claim.room, claim.streams, claim.size, sources, destinations, counts)
    return [ClaimedCopy(row[0], Endpoint(*row[1:7]), row[7], Endpoint(*row[8:14]), *row[14:]) for row in rows]


def renew_copies(mover: str, seconds: float, copied: Sequence[tuple[UUID, int]]) -> set[UUID]:
    """Keep copies, and tell how far they are: those that this mover still has."""
    rows = _RENEW.run(mover, seconds, [str(key) for key, _ in copied], [n for _, n in copied])
    return {key for (key,) in rows}


def given_up(mover: str, keys: Collection[UUID]) -> set[UUID]:
    """Those of these copies that were cancelled, or that another mover has by now."""
    return {key for (key,) in _GIVEN_UP.run(mover, [str(key) for key in keys])}


def end_copies(mover: str, ends: Sequence[CopyEnd]) -> int:
    """Write down how copies ended that this mover still has: how many."""
    keys, reasons, messages = map(list, zip(*ends, strict=True)) if ends else ([], [], [])
    return len(_END.run(mover, [str(key) for key in keys], [not reason for reason in reasons], reasons, messages)) if ends else 0


def put_back_copies(mover: str) -> None:
    """A mover that ends leaves what it has to others."""
    _PUT_BACK.run(mover)
