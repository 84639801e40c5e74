"""The end of transfers, with all that it implies, in one transaction: replica, wishes, jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.db import connection, transaction

from broker_site.foundation import gdpconfig
from brokerage.ledger.merged_jobs import lock_tied
from brokerage.ledger.transfers.delivery import finish_delivered
from brokerage.ledger.transfers.job_inputs import activate_complete, close_lacking
from brokerage.ledger.transfers.job_outputs import fail_undelivered
from brokerage.ledger.transfers.moves import TransferMove, move_transfers
from brokerage.rules.transfers.wishes import INPUT_ROLES, OUTPUT_ROLES
from workqueues.rules.jobs.file_names import copy_path

_ENDED = """
SELECT t.id, t.file_id, t.destination, t.reason, c.lfn, d.folder, d.vo, d.name
FROM brokerage_transfer t JOIN workqueues_cataloguefile c ON c.id = t.file_id
    JOIN workqueues_cataloguedataset d ON d.id = c.dataset_id
WHERE t.id = ANY(%s) ORDER BY t.id
"""
_REPLICAS = """
WITH known AS (
    SELECT id, moving FROM workqueues_cataloguefile WHERE id = ANY(%(files)s) ORDER BY id FOR NO KEY UPDATE
), made AS (
    INSERT INTO workqueues_replica AS r (file_id, storage, path, kind, last_used, keep_until, state)
    SELECT g.file_id, g.storage, g.path, CASE WHEN cached.any THEN 'cache' ELSE 'origin' END, now(),
        CASE WHEN cached.any AND cached.once THEN now() + make_interval(secs => %(lifetime_s)s) END,
        CASE WHEN c.moving AND NOT EXISTS (
            SELECT FROM brokerage_transferwish w WHERE w.transfer_id = g.transfer_id AND w.closed_at IS NULL
                AND (w.job_id IS NOT NULL OR EXISTS (
                    SELECT FROM workqueues_replica o WHERE o.file_id = c.id AND o.state = 'available'))
        ) THEN 'deleting' ELSE 'available' END
    FROM unnest(%(files)s::bigint[], %(storages)s::text[], %(paths)s::text[], %(transfers)s::bigint[])
        AS g(file_id, storage, path, transfer_id) JOIN known c ON c.id = g.file_id
    CROSS JOIN LATERAL (SELECT NOT EXISTS (
        SELECT FROM brokerage_transferwish w WHERE w.transfer_id = g.transfer_id AND w.closed_at IS NULL
            AND w.role <> ALL(%(input_roles)s)) AS any, NOT EXISTS (
        SELECT FROM brokerage_transferwish w JOIN workqueues_dataset d ON d.id = w.dataset_id
        WHERE w.transfer_id = g.transfer_id AND w.closed_at IS NULL AND 'manytime' = ANY(string_to_array(d.attributes, ','))
    ) AS once) AS cached
    ORDER BY g.file_id, g.storage
    ON CONFLICT (file_id, storage) DO UPDATE SET state = EXCLUDED.state, path = EXCLUDED.path, last_used = now(),
        keep_until = CASE WHEN r.kind = 'cache' THEN EXCLUDED.keep_until END,
        kind = CASE WHEN EXCLUDED.kind = 'origin' THEN 'origin' ELSE r.kind END
    RETURNING file_id, storage
)
INSERT INTO brokerage_replicachange (file_id, storage, what, who, why) SELECT file_id, storage, 'made', %(who)s, %(why)s FROM made
"""
_GATHERED = f"""
UPDATE workqueues_replica r SET kind = 'cache', last_used = now(), keep_until = now() + make_interval(secs => %(lifetime_s)s)
FROM (
    SELECT DISTINCT t.file_id, j.storage FROM brokerage_transfer t
        JOIN brokerage_transferwish w ON w.transfer_id = t.id AND w.closed_at IS NULL AND w.role IN ({OUTPUT_ROLES.sql})
        JOIN brokerage_job j ON j.id = w.job_id
    WHERE t.id = ANY(%(transfers)s) AND j.storage <> t.destination
) AS g
WHERE r.file_id = g.file_id AND r.storage = g.storage AND r.kind = 'origin' AND r.state = 'available'
"""
"""An output is where its dataset is collected: the copy where its job wrote it has a lifetime from now on (facts 3.1)."""

_WISHERS = """
SELECT w.job_id, w.role FROM brokerage_transferwish w
WHERE w.transfer_id = ANY(%s) AND w.closed_at IS NULL AND w.job_id IS NOT NULL GROUP BY 1, 2
"""
_LOCK = "SELECT id FROM brokerage_transfer WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
_THERE = """
SELECT t.id FROM brokerage_transfer t JOIN workqueues_replica r ON r.file_id = t.file_id AND r.storage = t.destination
WHERE t.id = ANY(%s) AND r.state = 'available' ORDER BY r.file_id FOR SHARE OF r
"""
_CLOSE = "UPDATE brokerage_transferwish SET closed_at = now() WHERE transfer_id = ANY(%s) AND closed_at IS NULL"


def finish(moves: Sequence[TransferMove], who: str) -> list[int]:
    """The files stand where they were wished: which of these transfers moved.

    A copy that only jobs wanted as input is a cache copy, every other one an origin. One of a dataset that is read once has a
    lifetime; one that is read many times (attribute `manytime`) is kept while there is space. That of a file which was withdrawn
    meanwhile is to be deleted.
    """
    with transaction.atomic():
        done = [id_ for (id_,) in move_transfers(moves, "done", who).run()]
        if done:
            jobs = _lock_jobs(done)  # first: one that is killed at this moment has closed its wishes by then
            _note_replicas(done, who)
            _let_go(done)
            _close_wishes(done)
            activate_complete(jobs["input"], who)
            finish_delivered(jobs["output"], who, done)
    return done


def finish_seen(moves: Sequence[TransferMove], who: str) -> list[int]:
    """Somebody else brought the files: which of these transfers moved. A copy that is about to go does not count."""
    with transaction.atomic(), connection.cursor() as cursor:
        ids = [move.id for move in moves]
        cursor.execute(_LOCK, [ids])
        cursor.execute(_THERE, [ids])
        there = {id_ for (id_,) in cursor.fetchall()}
        done = [id_ for (id_,) in move_transfers([move for move in moves if move.id in there], "done", who).run()]
        if done:
            jobs = _lock_jobs(done)
            _let_go(done)
            _close_wishes(done)
            activate_complete(jobs["input"], who)
            finish_delivered(jobs["output"], who, done)
    return done


def end_unmet(moves: Sequence[TransferMove], new: str, who: str, *, sources: Sequence[str] = ()) -> list[int]:
    """Transfers that are `failed` or `cancelled`: which of them moved. Jobs that wait for one of the files end."""
    with transaction.atomic():
        ended = [id_ for (id_,) in move_transfers(moves, new, who, sources=sources).run()]
        if ended:
            jobs = _lock_jobs(ended)
            _close_wishes(ended)
            close_lacking(jobs["input"], ended, who)
            fail_undelivered(jobs["output"], ended, who)
    return ended


def _note_replicas(transfers: Sequence[int], who: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_ENDED, [list(transfers)])
        rows = cursor.fetchall()
        cursor.execute(
            _REPLICAS,
            {
                "transfers": [id_ for id_, *_ in rows],
                "files": [file_id for _, file_id, *_ in rows],
                "storages": [storage for _, _, storage, *_ in rows],
                "paths": [copy_path(folder, vo, name, lfn) for *_, lfn, folder, vo, name in rows],
                "input_roles": list(INPUT_ROLES),
                "lifetime_s": gdpconfig.value("transfers", "ONETIME_LIFETIME"),
                "who": who[:128],
                "why": "brought by a transfer",
            },
        )


def _let_go(transfers: Sequence[int]) -> None:
    """Outputs that these brought are kept at the sites that made them for a while only."""
    with connection.cursor() as cursor:
        lifetime_s = gdpconfig.value("transfers", "GATHERED_LIFETIME")
        cursor.execute(_GATHERED, {"transfers": list(transfers), "lifetime_s": lifetime_s})


def _lock_jobs(transfers: Sequence[int]) -> dict[str, list[int]]:
    """Lock the jobs with open wishes for these transfers: those that wait for `input` and those for `output`."""
    jobs: dict[str, list[int]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_WISHERS, [list(transfers)])
        for job_id, role in cursor.fetchall():
            jobs["input" if role in INPUT_ROLES else "output"].append(job_id)
    lock_tied(sorted({job for of_role in jobs.values() for job in of_role}))
    return jobs


def _close_wishes(transfers: Sequence[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_CLOSE, [list(transfers)])
