"""Logs that were registered and could not be brought to where their dataset is collected: they leave it before further jobs write
to it, or read it (row J18, decision D12).
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection, transaction

_CLEAN = """
WITH lost AS (
    SELECT f.id AS file_id, f.task_id, f.status, c.id AS entry_id, d.collected_at
    FROM workqueues_dataset d
        JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name AND cd.vo = d.vo
        JOIN workqueues_cataloguefile c ON c.dataset_id = cd.id AND c.moving
        JOIN workqueues_file f ON f.dataset_id = d.id AND f.lfn = c.lfn AND f.out_job_id IS NOT NULL
            AND f.status = 'finished' AND f.lost_at IS NULL
    WHERE d.task_id = ANY(%(tasks)s) AND d.type = 'log' AND NOT EXISTS (
        SELECT FROM brokerage_transfer t JOIN brokerage_transferwish w ON w.transfer_id = t.id
        WHERE t.file_id = c.id AND w.closed_at IS NULL)
    ORDER BY c.id FOR NO KEY UPDATE OF c
), deleted AS (
    UPDATE workqueues_replica r SET state = 'deleting' FROM lost WHERE r.file_id = lost.entry_id AND r.state <> 'deleting'
    RETURNING r.file_id, r.storage
), copies AS (
    INSERT INTO brokerage_replicachange (file_id, storage, what, who, why)
    SELECT file_id, storage, 'deleting', %(who)s, 'its dataset of logs was cleaned' FROM deleted
), noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT file_id, task_id, status, 'removed', %(who)s,
        'it could not be brought to ' || collected_at || ' and left its dataset before further jobs were made' FROM lost
)
UPDATE workqueues_file f SET lost_at = now() FROM lost WHERE f.id = lost.file_id
"""


def clean_logs(task_ids: Collection[int], who: str) -> int:
    """Remove such logs of these tasks from their datasets, with a note in the history of each: how many.

    Those that are still on their way stay.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_CLEAN, {"tasks": sorted(task_ids), "who": who[:128]})
        return int(cursor.rowcount)
