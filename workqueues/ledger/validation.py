"""Outputs of a task that ends are compared with the catalogue (row J18): what is not there any more is known as lost."""

from __future__ import annotations

from django.db import connection, transaction

from workqueues.models import Dataset
from workqueues.states import OUTPUT_TYPES

_ABSENT = f"""
SELECT f.id, CASE WHEN c.id IS NULL THEN 'the catalogue does not have it any more'
    WHEN (c.fsize, c.checksum) IS DISTINCT FROM (f.fsize, f.checksum) THEN 'the catalogue has another size or checksum for it'
    ELSE 'no copy of it is left' END
FROM workqueues_dataset d
    JOIN workqueues_file f ON f.dataset_id = d.id AND f.out_job_id IS NOT NULL AND f.status = 'finished' AND NOT f.no_output
        AND f.lost_at IS NULL
    LEFT JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name AND cd.vo = d.vo
    LEFT JOIN workqueues_cataloguefile c ON c.dataset_id = cd.id AND c.lfn = f.lfn
WHERE d.task_id = %s AND d.type IN ({OUTPUT_TYPES.sql}) AND (
    c.id IS NULL OR (c.fsize, c.checksum) IS DISTINCT FROM (f.fsize, f.checksum)
    OR NOT EXISTS (SELECT FROM workqueues_replica r WHERE r.file_id = c.id AND r.state = 'available'))
ORDER BY f.id
"""
_LOSE = """
WITH lost AS (
    UPDATE workqueues_file f SET lost_at = now() FROM unnest(%(files)s::bigint[], %(whys)s::text[]) AS v(id, why)
    WHERE f.id = v.id AND f.lost_at IS NULL RETURNING f.id, f.task_id, f.status, v.why
)
INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
SELECT id, task_id, status, 'lost', %(who)s, why FROM lost
"""


def lose_absent_outputs(task_id: int, who: str) -> int:
    """Mark finished outputs of the task that the catalogue does not have as they were made, or without a copy: how many."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_ABSENT, [task_id])
        if not cursor.rowcount:
            return 0
        outputs = Dataset.objects.filter(task_id=task_id, type__in=OUTPUT_TYPES)
        list(outputs.select_for_update(no_key=True).order_by("id").values_list("id"))
        cursor.execute(_ABSENT, [task_id])  # as it is now that nobody else changes the files
        absent = cursor.fetchall()
        files, whys = [id_ for id_, _ in absent], [why for _, why in absent]
        cursor.execute(_LOSE, {"files": files, "whys": whys, "who": who[:128]})
        return int(cursor.rowcount)
