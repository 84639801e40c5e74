"""Jobs whose outputs were on their way and will not arrive."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from brokerage.ledger.transfers.delivery import finish_delivered
from brokerage.ledger.unreported_ends import end_jobs
from brokerage.states import TRANSFER_FAILED

_LACKING = """
SELECT w.job_id, min(t.reason), count(*), min(c.lfn), min(t.destination)
FROM brokerage_transferwish w JOIN brokerage_transfer t ON t.id = w.transfer_id
    JOIN workqueues_cataloguefile c ON c.id = t.file_id JOIN brokerage_job j ON j.id = w.job_id
WHERE w.transfer_id = ANY(%s) AND w.job_id = ANY(%s) AND w.role = 'output' AND j.status = 'transferring'
GROUP BY 1 ORDER BY 1
"""


def fail_undelivered(job_ids: Sequence[int], transfers: Sequence[int], who: str) -> None:
    """Fail those of these jobs, which the caller has locked, that wait for an output which these transfers did not bring.

    A log that was not brought is missed by nobody: the job finishes when the others are there.
    """
    if not job_ids:
        return
    whys: dict[int, str] = {}
    with connection.cursor() as cursor:
        cursor.execute(_LACKING, [list(transfers), list(job_ids)])
        for job_id, reason, n, lfn, destination in cursor.fetchall():
            others = f" and {n - 1} more" if n > 1 else ""
            whys[job_id] = f"output {lfn}{others} was not brought to {destination}: {reason}"
    if whys:
        end_jobs(list(whys), "failed", who, list(whys.values()), sub_status=TRANSFER_FAILED, sources=["transferring"])
    finish_delivered(job_ids, who)
