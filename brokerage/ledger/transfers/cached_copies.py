"""How long copies are kept that were brought for jobs (row J17, decision D13). Removing them is not here."""

from __future__ import annotations

from django.db import connection

from workqueues.queries.read_grants import INPUT_IN_CATALOGUE

MANY_TIME = "(^|,)manytime(,|$)"

MAY_RUN_AT = """(j.computing_queue_id = {queue} OR j.computing_queue_id IS NULL AND {queue} = ANY (ARRAY(
            SELECT p.computing_queue_id FROM brokerage_taskqueue t
                JOIN brokerage_requirementplace p ON p.requirement_set_id = t.requirement_set_id
            WHERE t.id = j.task_queue_id AND t.computing_queue_id IS NULL)))"""
"""SQL: the job j is at a queue, or is open to it (row X4)."""
_USED = f"""
WITH used AS (
    SELECT r.id, bool_or(d.attributes ~ %(many)s) AS many
    FROM brokerage_job j JOIN brokerage_jobinput i ON i.job_id = j.id AND i.status = 'live'
        JOIN workqueues_file f ON f.id = i.file_id AND f.type = 'input' JOIN workqueues_dataset d ON d.id = f.dataset_id
        JOIN workqueues_cataloguedataset c ON {INPUT_IN_CATALOGUE}
        JOIN workqueues_cataloguefile t ON t.dataset_id = c.id AND t.lfn = f.lfn
        JOIN workqueues_replica r ON r.file_id = t.id AND r.kind = 'cache' AND r.state = 'available'
        JOIN brokerage_queuestorage s ON s.storage_id = r.storage AND {MAY_RUN_AT.format(queue="s.queue_id")}
    WHERE j.ended_at IS NULL AND EXISTS (SELECT FROM workqueues_replica WHERE kind = 'cache')
    GROUP BY 1
), locked AS (
    SELECT r.id, used.many FROM workqueues_replica r JOIN used USING (id) ORDER BY r.id FOR NO KEY UPDATE OF r SKIP LOCKED
)
UPDATE workqueues_replica r SET last_used = now(),
    keep_until = CASE WHEN NOT l.many THEN now() + make_interval(secs => %(keep)s) END
FROM locked l WHERE r.id = l.id
"""


def keep_copies(keep_s: float) -> None:
    """Copies that live jobs read are kept from now on, one for input that is read once for so long.

    Copies of input that many tasks read have no end: they go, the longest unused first, when room is wanted.
    """
    with connection.cursor() as cursor:
        cursor.execute(_USED, {"keep": keep_s, "many": MANY_TIME})
