"""Outputs of jobs that end before these have arrived: nobody sees them, and their copies are to be deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connection

from brokerage.ledger.ending_jobs import EndingJob

_UNDELIVERED = """
UPDATE brokerage_jobresult r SET fingerprint = NULL, error_code = %(code)s, error_message = left(v.why || coalesce((
    SELECT '; not brought to ' || min(t.destination) || ': ' || string_agg(c.lfn, ', ' ORDER BY c.lfn)
    FROM brokerage_transferwish w JOIN brokerage_transfer t ON t.id = w.transfer_id
        JOIN workqueues_cataloguefile c ON c.id = t.file_id
    WHERE w.job_id = r.job_id AND w.closed_at IS NULL), ''), 500)
FROM unnest(%(jobs)s::bigint[], %(whys)s::text[]) AS v(job_id, why) WHERE r.job_id = v.job_id
"""
_WITHDRAW = """
WITH gone AS (
    SELECT c.id FROM unnest(%(vos)s::text[], %(names)s::text[], %(lfns)s::text[]) AS g(vo, name, lfn)
        JOIN workqueues_cataloguedataset d ON d.name = g.name AND d.vo = g.vo
        JOIN workqueues_cataloguefile c ON c.dataset_id = d.id AND c.lfn = g.lfn AND c.moving
    ORDER BY c.id FOR NO KEY UPDATE OF c
), marked AS (
    UPDATE workqueues_replica r SET state = 'deleting' FROM gone WHERE r.file_id = gone.id AND r.state <> 'deleting'
    RETURNING r.file_id, r.storage
)
INSERT INTO brokerage_replicachange (file_id, storage, what, who, why)
SELECT file_id, storage, 'deleting', %(who)s, 'the job that made it ended before it had arrived' FROM marked
"""
_FORGET = """
WITH emptied AS (
    SELECT c.id FROM workqueues_cataloguefile c JOIN workqueues_cataloguedataset d ON d.id = c.dataset_id
    WHERE c.moving AND NOT EXISTS (SELECT FROM workqueues_replica r WHERE r.file_id = c.id)
        AND NOT EXISTS (SELECT FROM brokerage_transfer t WHERE t.file_id = c.id)
        AND NOT EXISTS (
            SELECT FROM workqueues_file f JOIN workqueues_dataset e ON e.id = f.dataset_id
            WHERE f.lfn = c.lfn AND e.dataset_name = d.name AND e.vo = d.vo AND f.out_job_id IS NOT NULL
                AND f.status <> 'failed' AND f.lost_at IS NULL)
    ORDER BY c.id LIMIT %s FOR UPDATE OF c SKIP LOCKED
)
DELETE FROM workqueues_cataloguefile c USING emptied WHERE c.id = emptied.id
"""


def withdraw(jobs: Sequence[EndingJob], code: str, who: str, whys: Mapping[int, str]) -> None:
    """Take back what these jobs registered and is on its way, in the caller's transaction, which holds the jobs.

    Their results, which their pilots' words wrote, tell why they ended (`whys` by job), and what has not arrived. To be called
    while their wishes are open.
    """
    ids = [job.id for job in jobs]
    rows = [(job.vo, output.dataset_name, output.lfn) for job in jobs for output in job.outputs]
    vos, names, lfns = [list(column) for column in zip(*rows, strict=True)] if rows else ([], [], [])
    with connection.cursor() as cursor:
        cursor.execute(_UNDELIVERED, {"code": code[:40], "jobs": ids, "whys": [whys[id_] for id_ in ids]})
        cursor.execute(_WITHDRAW, {"vos": vos, "names": names, "lfns": lfns, "who": who[:128]})


def forget_emptied(limit: int) -> int:
    """Remove entries of withdrawn files of which no copy and no transfer is left, so many at most: how many."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [limit])
        return int(cursor.rowcount)
