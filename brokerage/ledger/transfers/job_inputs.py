"""Jobs whose input must come: assigned until no wish of theirs is open."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from django.db import connection

from brokerage.ledger.moves import move_jobs
from brokerage.ledger.paused_tasks import hold_back_paused
from brokerage.ledger.ready_jobs import tell_after_commit
from brokerage.ledger.unreported_ends import end_jobs
from brokerage.rules.transfers.reasons import UNREADABLE
from brokerage.rules.transfers.wishes import INPUT_ROLES
from brokerage.states import INPUT_MISSING, TRANSFER_FAILED
from workqueues.ledger.files import Hold
from workqueues.rules.jobs.held_files import REPORTED

_COMPLETE = f"""
SELECT j.id FROM brokerage_job j WHERE j.id = ANY(%s) AND j.status = 'assigned' AND NOT EXISTS (
    SELECT FROM brokerage_transferwish w WHERE w.job_id = j.id AND w.closed_at IS NULL AND w.role IN ({INPUT_ROLES.sql}))
ORDER BY j.id
"""
_QUEUES = "SELECT computing_queue_id FROM brokerage_job WHERE id = ANY(%s)"
_LACKING = f"""
SELECT w.job_id, min(t.reason), count(*), min(c.lfn), min(t.destination), bool_or(t.reason IN ({UNREADABLE.sql}))
FROM brokerage_transferwish w JOIN brokerage_transfer t ON t.id = w.transfer_id
    JOIN workqueues_cataloguefile c ON c.id = t.file_id JOIN brokerage_job j ON j.id = w.job_id
WHERE w.transfer_id = ANY(%s) AND w.job_id = ANY(%s) AND w.role IN ({INPUT_ROLES.sql}) AND j.status = 'assigned'
GROUP BY 1 ORDER BY 1
"""

_UNREAD = f"""
SELECT w.job_id, f.id, t.reason, coalesce(nullif(t.source, ''), t.destination)
FROM brokerage_transferwish w JOIN brokerage_transfer t ON t.id = w.transfer_id
    JOIN workqueues_cataloguefile c ON c.id = t.file_id
    JOIN brokerage_jobinput i ON i.job_id = w.job_id JOIN workqueues_file f ON f.id = i.file_id
WHERE w.transfer_id = ANY(%s) AND w.job_id = ANY(%s) AND t.reason IN ({UNREADABLE.sql})
    AND f.dataset_id = w.dataset_id AND f.lfn = c.lfn AND f.type = 'input'
"""


def activate_complete(job_ids: Sequence[int], who: str) -> list[int]:
    """Activate those of these jobs, which the caller has locked, whose input is all there: which. Those of paused tasks wait."""
    if not job_ids:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_COMPLETE, [list(job_ids)])
        complete = [id_ for (id_,) in cursor.fetchall()]
        if not complete:
            return []
        moved = [id_ for (id_,) in move_jobs(complete, "activated", who, "its input is there", sources=["assigned"]).run()]
        cursor.execute(_QUEUES, [hold_back_paused(moved, who)])
        tell_after_commit(Counter(queue for (queue,) in cursor.fetchall()))
    return moved


def close_lacking(job_ids: Sequence[int], transfers: Sequence[int], who: str) -> None:
    """Close those of these jobs, which the caller has locked, that wait for a file which these transfers did not bring.

    Where no copy is left, or what the last one is said to be cannot be read, the input is missing and is looked for, as where a
    pilot reports that (decision D9); else its transfer failed (decision I2).
    """
    if not job_ids:
        return
    by_end: dict[tuple[str, str], list[int]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_LACKING, [list(transfers), list(job_ids)])
        for job_id, reason, n, lfn, destination, missing in cursor.fetchall():
            others = f" and {n - 1} more" if n > 1 else ""
            why = f"input {lfn}{others} was not brought to {destination}: {reason}"
            by_end[INPUT_MISSING if missing else TRANSFER_FAILED, why].append(job_id)
        cursor.execute(_UNREAD, [list(transfers), list(job_ids)])
        holds: dict[int, dict[int, Hold]] = defaultdict(dict)
        for job_id, file_id, reason, place in cursor.fetchall():
            holds[job_id][file_id] = Hold(f"{REPORTED}{'corrupt' if reason == 'source_corrupt' else 'missing'} at {place}")
    for (sub_status, why), ids in sorted(by_end.items()):
        end_jobs(ids, "closed", who, why, sub_status=sub_status, sources=["assigned"], holds=holds)
