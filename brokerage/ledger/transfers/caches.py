"""The end of copies: cache copies that nobody needs are chosen, and what is `deleting` goes, in steps that may each be repeated.

A copy that is chosen is `deleting`, and nobody is told of it any more. Until its removal begins (`removal_at`), who wishes it
gets it back; after that it is gone for good, and a transfer brings it anew. Order of locks: catalogue file -> copy, never waited
for.
Here: the rows. Not here: the files (`brokerage.transfers.copy_removal`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction

from broker_site.foundation.agency.look import look_after_commit
from brokerage.ledger.transfers.cached_copies import MAY_RUN_AT
from brokerage.ledger.transfers.ends import finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.rules.transfers.reasons import SEEN
from workqueues.queries.read_grants import INPUT_IN_CATALOGUE
from workqueues.rules.jobs.log_streams import stream_files
from workqueues.states import LOG_TYPES

ELSEWHERE = """EXISTS (
    SELECT FROM workqueues_replica o JOIN brokerage_storageendpoint e ON e.name = o.storage
    WHERE o.file_id = r.file_id AND o.id <> r.id AND o.state = 'available' AND e.state = 'ACTIVE' AND e.root_state <> 'down')"""
"""SQL: another copy of the file can be read."""

_LOCKED = """
    FROM workqueues_replica r JOIN workqueues_cataloguefile c ON c.id = r.file_id
    WHERE r.kind = 'cache' AND r.state = 'available'"""
_LOCK = "FOR NO KEY UPDATE OF c SKIP LOCKED FOR UPDATE OF r SKIP LOCKED"
_EXPIRED = f"""
SELECT r.id, c.fsize {_LOCKED} AND r.keep_until <= %(now)s AND {ELSEWHERE} ORDER BY r.keep_until, r.id LIMIT %(most)s {_LOCK}
"""
_OLDEST = f"""
SELECT r.id, c.fsize {_LOCKED} AND r.storage = %(storage)s AND (r.last_used < %(now)s OR r.last_used IS NULL) AND {ELSEWHERE}
ORDER BY r.last_used, r.id LIMIT %(most)s {_LOCK}
"""
_PINNED = f"""
EXISTS (
    SELECT FROM brokerage_transfer t
    WHERE t.file_id = r.file_id AND t.ended_at IS NULL AND r.storage IN (t.source, t.destination))
OR EXISTS (
    SELECT FROM workqueues_cataloguefile f JOIN workqueues_cataloguedataset c ON c.id = f.dataset_id
        JOIN workqueues_file u ON u.lfn = f.lfn JOIN workqueues_dataset d ON d.id = u.dataset_id
        CROSS JOIN LATERAL (
            SELECT job_id FROM brokerage_jobinput
            WHERE file_id = u.id AND status = 'live' AND tracked AND event_range_id IS NULL
            UNION ALL
            SELECT job_id FROM brokerage_jobinput
            WHERE file_id = u.id AND status = 'live' AND (NOT tracked OR event_range_id IS NOT NULL)
        ) AS i
        JOIN brokerage_job j ON j.id = i.job_id AND j.ended_at IS NULL
        JOIN brokerage_queuestorage s ON s.storage_id = r.storage AND {MAY_RUN_AT.format(queue="s.queue_id")}
    WHERE f.id = r.file_id AND {INPUT_IN_CATALOGUE})
"""
"""SQL: a transfer brings the file from or to there, or a live job reads it, or may, at a queue with that storage."""
_USE_PINNED = f"""
UPDATE workqueues_replica r SET last_used = %(now)s,
    keep_until = CASE WHEN r.keep_until <= %(now)s THEN %(now)s + make_interval(secs => %(lifetime)s) ELSE r.keep_until END
WHERE r.id = ANY(%(ids)s) AND ({_PINNED}) RETURNING r.id
"""
_MARK = f"""
WITH chosen AS (
    SELECT DISTINCT ON (r.file_id) r.id FROM workqueues_replica r
    WHERE r.id = ANY(%(ids)s) AND r.state = 'available' AND r.kind = 'cache' AND {ELSEWHERE}
    ORDER BY r.file_id, r.last_used, r.id
), marked AS (
    UPDATE workqueues_replica r SET state = 'deleting', removal_at = NULL FROM chosen WHERE r.id = chosen.id
    RETURNING r.file_id, r.storage
)
INSERT INTO brokerage_replicachange (file_id, storage, what, who, why)
SELECT file_id, storage, 'deleting', %(who)s, %(why)s FROM marked
"""
_ON_THE_WAY = """
SELECT coalesce(sum(c.fsize), 0) FROM workqueues_replica r JOIN workqueues_cataloguefile c ON c.id = r.file_id
WHERE r.storage = %s AND r.state = 'deleting'
"""
_WANTED = """
SELECT t.id FROM workqueues_replica r JOIN brokerage_transfer t ON t.file_id = r.file_id AND t.destination = r.storage
WHERE r.storage = ANY(%s) AND r.state = 'deleting' AND r.kind = 'cache' AND r.removal_at IS NULL
    AND t.ended_at IS NULL AND t.status = 'queued'
ORDER BY t.id LIMIT %s FOR NO KEY UPDATE OF t SKIP LOCKED FOR UPDATE OF r SKIP LOCKED
"""
_KEEP = """
UPDATE workqueues_replica r SET keep_until = now() + make_interval(secs => %s) FROM brokerage_transfer t
WHERE t.id = ANY(%s) AND r.file_id = t.file_id AND r.storage = t.destination AND r.keep_until IS NOT NULL
"""
_CLAIM = f"""
WITH due AS (
    SELECT r.id, c.id AS file_id, c.lfn, d.vo, EXISTS (
        SELECT FROM workqueues_dataset l WHERE l.dataset_name = d.name AND l.vo = d.vo AND l.type IN ({LOG_TYPES.sql})) AS is_log
    FROM workqueues_replica r JOIN workqueues_cataloguefile c ON c.id = r.file_id
        JOIN workqueues_cataloguedataset d ON d.id = c.dataset_id
    WHERE r.storage = ANY(%(storages)s) AND r.state = 'deleting' AND (r.removal_at IS NULL OR r.removal_at <= now())
        AND NOT (r.removal_at IS NULL AND r.kind = 'cache' AND EXISTS (
            SELECT FROM brokerage_transfer t
            WHERE t.file_id = r.file_id AND t.destination = r.storage AND t.ended_at IS NULL AND t.status = 'queued'))
    ORDER BY r.id LIMIT %(most)s FOR NO KEY UPDATE OF c SKIP LOCKED FOR UPDATE OF r SKIP LOCKED
)
UPDATE workqueues_replica r SET removal_at = clock_timestamp() + make_interval(secs => %(claim_s)s) FROM due WHERE r.id = due.id
RETURNING r.id, due.vo, r.storage, coalesce(nullif(r.path, ''), due.lfn), r.removal_at, EXISTS (
    SELECT FROM workqueues_cataloguefile f JOIN workqueues_replica o ON o.file_id = f.id
    WHERE f.lfn = due.lfn AND f.id <> due.file_id AND o.storage = r.storage AND o.state <> 'deleting'
        AND coalesce(nullif(o.path, ''), f.lfn) = coalesce(nullif(r.path, ''), due.lfn)),
    due.is_log
"""
_REGISTERED = """
SELECT coalesce(nullif(r.path, ''), c.lfn) FROM workqueues_replica r JOIN workqueues_cataloguefile c ON c.id = r.file_id
WHERE r.storage = %s AND c.lfn = ANY(%s)
"""
_REMOVED = """
WITH gone AS (
    DELETE FROM workqueues_replica r USING unnest(%(ids)s::bigint[], %(claims)s::timestamptz[]) AS g(id, claim)
    WHERE r.id = g.id AND r.state = 'deleting' AND r.removal_at = g.claim RETURNING r.file_id, r.storage
)
INSERT INTO brokerage_replicachange (file_id, storage, what, who, why)
SELECT file_id, storage, 'removed', %(who)s, 'its file is removed' FROM gone
"""


class DoomedCopy(NamedTuple):
    """A copy whose file is to be removed now, and until when that is one's own to do. `shared`: another copy is the same file.
    `beside`: plain files that go with it, the streams of a log.
    """

    id: int
    vo: str
    storage: str
    path: str
    claim: datetime
    shared: bool
    beside: tuple[str, ...] = ()


class Marking(NamedTuple):
    """What one batch came to: copies looked at, copies that go, and their bytes."""

    seen: int
    marked: int
    bytes: int


def mark_expired(now: datetime, lifetime_s: float, who: str, most: int) -> Marking:
    """Choose cache copies whose time is over."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_EXPIRED, {"now": now, "most": most})
        copies = cursor.fetchall()
        return _mark(copies, None, now, lifetime_s, who, "its time as a cache copy is over")


def mark_oldest(storage: str, short: float, now: datetime, lifetime_s: float, who: str, why: str, most: int) -> Marking:
    """Choose cache copies at an endpoint that lacks so many bytes, the longest unused first; what is being removed counts."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('cache copies at'), hashtext(%s))", [storage])
        cursor.execute(_ON_THE_WAY, [storage])
        short -= float(cursor.fetchone()[0])
        if short <= 0:
            return Marking(0, 0, 0)
        cursor.execute(_OLDEST, {"storage": storage, "now": now, "most": most})
        copies = cursor.fetchall()
        return _mark(copies, short, now, lifetime_s, who, why)


def _mark(
    copies: Sequence[tuple[int, int]], short: float | None, now: datetime, lifetime_s: float, who: str, why: str
) -> Marking:
    """Of these copies, which are locked, those that are not needed; one that is needed counts as used now."""
    with connection.cursor() as cursor:
        cursor.execute(_USE_PINNED, {"ids": [id_ for id_, _ in copies], "now": now, "lifetime": lifetime_s})
        pinned = {id_ for (id_,) in cursor.fetchall()}
        ids, size = [], 0
        for id_, fsize in copies:
            if id_ not in pinned and (short is None or size < short):
                ids.append(id_)
                size += fsize
        cursor.execute(_MARK, {"ids": ids, "who": who[:128], "why": why[:255]})
        return Marking(len(copies), cursor.rowcount, size)


def give_back(storages: Collection[str], lifetime_s: float, who: str, most: int) -> int:
    """Copies whose removal has not begun and that somebody wishes meanwhile stay: how many."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WANTED, [list(storages), most])
        moves = [TransferMove(id_, "its copy was about to be removed, and is still there", reason=SEEN) for (id_,) in cursor]
        kept = finish(moves, who) if moves else []
        cursor.execute(_KEEP, [lifetime_s, kept])
        return len(kept)


def claim_removals(storages: Collection[str], claim_s: float, most: int) -> list[DoomedCopy]:
    """Begin the removal of copies that are `deleting`: from now on nobody gets them back."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"storages": list(storages), "claim_s": claim_s, "most": most})
        copies = [(DoomedCopy(*row), is_log) for *row, is_log in cursor.fetchall()]
    beside = _streams_beside([copy for copy, is_log in copies if is_log and not copy.shared])
    return [copy._replace(beside=beside.get(copy.id, ())) for copy, _ in copies]


def _streams_beside(logs: Sequence[DoomedCopy]) -> dict[int, tuple[str, ...]]:
    """The streams of each of these logs, but for what is registered as a file of its own."""
    by_storage = defaultdict(list)
    for log in logs:
        by_storage[log.storage].append(log)
    beside: dict[int, tuple[str, ...]] = {}
    with connection.cursor() as cursor:
        for storage, there in by_storage.items():
            files = {log.id: stream_files(log.path) for log in there}
            names = [path.rpartition("/")[2] for paths in files.values() for path in paths]
            cursor.execute(_REGISTERED, [storage, names])
            registered = {path for (path,) in cursor.fetchall()}
            beside |= {id_: tuple(path for path in paths if path not in registered) for id_, paths in files.items()}
    return beside


def note_removed(copies: Sequence[DoomedCopy], who: str) -> int:
    """The files of these copies are gone: how many of them were still one's own to remove. Transfers that waited go on."""
    if not copies:
        return 0
    with transaction.atomic(), connection.cursor() as cursor:
        values: dict[str, Any] = {
            "ids": [copy.id for copy in copies],
            "claims": [copy.claim for copy in copies],
            "who": who[:128],
        }
        cursor.execute(_REMOVED, values)
        if cursor.rowcount:
            look_after_commit("transfer")
        return int(cursor.rowcount)
