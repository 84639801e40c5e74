"""Files that came without anybody telling of it: the jobs that wait for them go on (seed 001, direct look-up; facts 2.4)."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction

from brokerage.ledger.transfers.ends import finish
from brokerage.ledger.transfers.job_inputs import activate_complete
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.rules.transfers.reasons import SEEN
from brokerage.rules.transfers.wishes import INPUT_ROLES

MOST = 1000
"""Transfers that are looked at in one transaction."""

_DUE = f"""
UPDATE brokerage_transfer SET looked_at = now() WHERE id = ANY (ARRAY(
    SELECT t.id FROM brokerage_transfer t
    WHERE t.ended_at IS NULL AND coalesce(t.looked_at, t.created_at) < now() - make_interval(secs => %(period)s)
        AND EXISTS (
            SELECT FROM brokerage_transferwish w JOIN brokerage_job j ON j.id = w.job_id
            WHERE w.transfer_id = t.id AND w.closed_at IS NULL AND w.role IN ({INPUT_ROLES.sql})
                AND j.status = 'assigned' AND j.priority > %(priority)s)
    ORDER BY t.id LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED))
RETURNING id, EXISTS (
    SELECT FROM workqueues_replica r WHERE r.file_id = brokerage_transfer.file_id AND r.storage = brokerage_transfer.destination
        AND r.state = 'available')
"""
_READABLE = f"""
SELECT w.id, w.job_id FROM brokerage_transfer t
    JOIN brokerage_transferwish w ON w.transfer_id = t.id AND w.closed_at IS NULL AND w.role IN ({INPUT_ROLES.sql})
    JOIN brokerage_job j ON j.id = w.job_id AND j.status = 'assigned'
WHERE t.id = ANY(%s) AND EXISTS (
    SELECT FROM workqueues_replica r JOIN brokerage_storageendpoint e ON e.name = r.storage
        JOIN brokerage_queuestorage s ON s.storage_id = e.name
    WHERE r.file_id = t.file_id AND r.state = 'available' AND e.state = 'ACTIVE' AND NOT e.is_tape
        AND s.queue_id = j.computing_queue_id AND s.access LIKE 'read\\_lan%%')
"""
_LOCK = "SELECT id FROM brokerage_job WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
_CLOSE = "UPDATE brokerage_transferwish SET closed_at = now() WHERE id = ANY(%s) AND closed_at IS NULL"


def look_up(period_s: float, priority: int, who: str) -> int:
    """Look for the files for which jobs of a higher priority than this wait, each once in a period: how many were there.

    One at its destination ends its transfer; one at another disk that the queue of a job reads is all that this job wanted.
    """
    n = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_DUE, {"period": period_s, "priority": priority, "most": MOST})
            due = cursor.fetchall()
            arrived = [id_ for id_, there in due if there]
            n += len(finish([TransferMove(id_, "found by a look-up", reason=SEEN) for id_ in arrived], who)) if arrived else 0
            n += _meet_elsewhere([id_ for id_, there in due if not there], who)
        if len(due) < MOST:
            return n


def _meet_elsewhere(transfers: Sequence[int], who: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_READABLE, [list(transfers)])
        met = cursor.fetchall()
        if met:
            jobs = sorted({job_id for _, job_id in met})
            cursor.execute(_LOCK, [jobs])
            cursor.execute(_CLOSE, [[id_ for id_, _ in met]])
            activate_complete(jobs, who)
    return len(met)
