"""How long copies are kept that were brought for jobs (row J17, decision D13). Removing them is not here."""

from __future__ import annotations

from django.db import connection

from workqueues.queries.read_grants import INPUT_IN_CATALOGUE

MANY_TIME = "(^|,)manytime(,|$)"

_USED = f"""
WITH used AS (
    SELECT r.id, bool_or(d.attributes ~ %(many)s) AS many
    FROM brokerage_job j JOIN brokerage_jobinput i ON i.job_id = j.id AND i.status = 'live'
        JOIN workqueues_file f ON f.id = i.file_id AND f.type = 'input' JOIN workqueues_dataset d ON d.id = f.dataset_id
        JOIN workqueues_cataloguedataset c ON {INPUT_IN_CATALOGUE}
        JOIN workqueues_cataloguefile t ON t.dataset_id = c.id AND t.lfn = f.lfn
        JOIN workqueues_replica r ON r.file_id = t.id AND r.kind = 'cache' AND r.state = 'available'
        JOIN brokerage_queuestorage s ON s.storage_id = r.storage AND s.queue_id = j.computing_queue_id
    WHERE j.ended_at IS NULL AND EXISTS (SELECT FROM workqueues_replica WHERE kind = 'cache')
    GROUP BY 1
), locked AS (
    SELECT r.id, used.many FROM workqueues_replica r JOIN used USING (id) ORDER BY r.id FOR NO KEY UPDATE OF r SKIP LOCKED
)
UPDATE workqueues_replica r SET last_used = now(),
    keep_until = CASE WHEN NOT l.many THEN now() + make_interval(secs => %(keep)s) END
FROM locked l WHERE r.id = l.id
"""
_FRESH = """
UPDATE workqueues_replica r SET keep_until = r.last_used + make_interval(secs => %(keep)s)
WHERE r.kind = 'cache' AND r.state = 'available' AND r.keep_until IS NULL
    AND r.last_used > now() - 2 * make_interval(secs => %(period)s)
    AND NOT EXISTS (
        SELECT FROM brokerage_transfer t JOIN brokerage_transferwish w ON w.transfer_id = t.id
            JOIN workqueues_dataset d ON d.id = w.dataset_id
        WHERE t.file_id = r.file_id AND t.destination = r.storage AND d.attributes ~ %(many)s)
"""


def keep_copies(keep_s: float, period_s: float) -> None:
    """Copies that live jobs read are kept from now on, those that came in the last periods from when they came.

    Copies of input that many tasks read have no end: they go, the longest unused first, when room is wanted.
    """
    values: dict[str, float | str] = {"keep": keep_s, "period": period_s, "many": MANY_TIME}
    with connection.cursor() as cursor:
        cursor.execute(_USED, values)
        cursor.execute(_FRESH, values)
