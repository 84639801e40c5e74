"""Transient datasets whose time is over: nobody sees their files any more, and the copies are to be deleted."""

from __future__ import annotations

from django.db import connection, transaction

from workqueues.queries.read_grants import INPUT_IN_CATALOGUE

_DUE = f"""
SELECT c.id FROM workqueues_cataloguedataset c
WHERE c.expires_at < now() AND NOT EXISTS (
    SELECT FROM workqueues_dataset d JOIN workqueues_task t ON t.id = d.task_id
    WHERE d.dataset_name IN (c.name, c.vo || ':' || c.name) AND d.type = 'input' AND {INPUT_IN_CATALOGUE} AND t.ended_at IS NULL
    OFFSET 0)
ORDER BY c.expires_at LIMIT %s FOR NO KEY UPDATE OF c SKIP LOCKED
"""
"""Those that a task reads which has not ended are kept for it. OFFSET 0: readers are looked for by the name of the dataset."""

_REMOVE = """
WITH gone AS (
    SELECT c.id, c.lfn, cd.vo, cd.name FROM workqueues_cataloguefile c JOIN workqueues_cataloguedataset cd ON cd.id = c.dataset_id
    WHERE c.dataset_id = ANY(%(datasets)s) AND NOT c.moving ORDER BY c.id LIMIT %(limit)s FOR NO KEY UPDATE OF c
), hidden AS (
    UPDATE workqueues_cataloguefile c SET moving = true FROM gone WHERE c.id = gone.id
), marked AS (
    UPDATE workqueues_replica r SET state = 'deleting' FROM gone WHERE r.file_id = gone.id AND r.state <> 'deleting'
    RETURNING r.file_id, r.storage
), copies AS (
    INSERT INTO brokerage_replicachange (file_id, storage, what, who, why)
    SELECT file_id, storage, 'deleting', %(who)s, %(why)s FROM marked
), lost AS (
    UPDATE workqueues_file f SET lost_at = now()
    FROM gone JOIN workqueues_dataset e ON e.dataset_name = gone.name AND e.vo = gone.vo
    WHERE f.dataset_id = e.id AND f.lfn = gone.lfn AND f.out_job_id IS NOT NULL AND f.status = 'finished' AND f.lost_at IS NULL
    RETURNING f.id, f.task_id, f.status
), noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, task_id, status, 'removed', %(who)s, %(why)s FROM lost
)
SELECT count(*) FROM gone
"""
_EMPTY = """
UPDATE workqueues_cataloguedataset cd SET expires_at = NULL, state = 'expired'
WHERE cd.id = ANY(%s) AND NOT EXISTS (SELECT FROM workqueues_cataloguefile c WHERE c.dataset_id = cd.id AND NOT c.moving)
"""
WHY = "its dataset is transient, and its time was over"


def remove_expired(datasets: int, files: int, who: str) -> int:
    """Remove so many files at most of so many transient datasets whose time is over: how many."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_DUE, [datasets])
        due = [id_ for (id_,) in cursor.fetchall()]
        if not due:
            return 0
        cursor.execute(_REMOVE, {"datasets": due, "limit": files, "who": who[:128], "why": WHY})
        (n,) = cursor.fetchone() or (0,)
        cursor.execute(_EMPTY, [due])
        return int(n)
