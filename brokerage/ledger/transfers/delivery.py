"""Jobs whose outputs were on their way and have arrived: they finish, and readers of the catalogue see the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connection

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import run_together
from brokerage.ledger.ending_jobs import EndingJob, job_outcome, read_jobs, uses
from brokerage.ledger.merged_jobs import MergeEnd, end_merged
from brokerage.ledger.moves import move_jobs
from brokerage.rules.dispatch.settlement import ReportedOutput
from brokerage.rules.transfers.wishes import OUTPUT_ROLES
from workqueues.ledger.files import settling

_COMPLETE = f"""
SELECT j.id FROM brokerage_job j WHERE j.id = ANY(%s) AND j.status = 'transferring' AND NOT EXISTS (
    SELECT FROM brokerage_transferwish w WHERE w.job_id = j.id AND w.closed_at IS NULL AND w.role IN ({OUTPUT_ROLES.sql}))
ORDER BY j.id
"""
_ARRIVED = """
WITH known AS (
    SELECT g.output, g.goes_to, c.id, c.fsize, c.checksum, c.n_events
    FROM unnest(%(outputs)s::bigint[], %(vos)s::text[], %(names)s::text[], %(lfns)s::text[], %(places)s::text[])
        AS g(output, vo, name, lfn, goes_to)
        JOIN workqueues_cataloguedataset d ON d.name = g.name AND d.vo = g.vo
        JOIN workqueues_cataloguefile c ON c.dataset_id = d.id AND c.lfn = g.lfn
    ORDER BY c.id FOR NO KEY UPDATE OF c
), shown AS (
    UPDATE workqueues_cataloguefile c SET moving = false FROM known
    WHERE c.id = known.id AND c.moving AND (known.goes_to = '' OR EXISTS (
        SELECT FROM workqueues_replica r WHERE r.file_id = c.id AND r.storage = known.goes_to AND r.state = 'available'))
)
SELECT output, fsize, checksum, n_events FROM known
"""
"""Of a log that could not be brought the entry stays as it is, and the dataset incomplete."""

_LOGS = """
WITH arrived AS (
    SELECT DISTINCT t.file_id FROM brokerage_transfer t
        JOIN brokerage_transferwish w ON w.transfer_id = t.id AND w.role = 'log'
        JOIN brokerage_job j ON j.id = w.job_id AND j.ended_at IS NOT NULL
        JOIN workqueues_cataloguefile c ON c.id = t.file_id AND c.moving
        JOIN workqueues_file f ON f.out_job_id = j.id AND f.lfn = c.lfn AND f.status = 'finished' AND f.lost_at IS NULL
    WHERE t.id = ANY(%s) AND t.status = 'done' AND w.job_id = ANY(%s)
), locked AS (
    SELECT c.id FROM workqueues_cataloguefile c WHERE c.id IN (SELECT file_id FROM arrived) ORDER BY c.id FOR NO KEY UPDATE
)
UPDATE workqueues_cataloguefile c SET moving = false FROM locked WHERE c.id = locked.id
"""


def finish_delivered(job_ids: Sequence[int], who: str, transfers: Sequence[int] = ()) -> list[int]:
    """Finish those of these jobs, which the caller has locked, of whose outputs none is on its way any more: which.

    Logs that these transfers brought, of jobs that had ended before, are seen from now on.
    """
    if not job_ids:
        return []
    with connection.cursor() as cursor:
        if transfers:
            cursor.execute(_LOGS, [list(transfers), list(job_ids)])
        cursor.execute(_COMPLETE, [list(job_ids)])
        complete = [id_ for (id_,) in cursor.fetchall()]
    if not complete:
        return []
    jobs = read_jobs(complete)
    made = _arrived(jobs)
    why = [_why(job) for job in jobs]
    moved = move_jobs([job.id for job in jobs], "finished", who, why, sources=["transferring"])
    run_together([moved, uses([(job, "finished") for job in jobs])])
    merged = end_merged([MergeEnd(job, "finished") for job in jobs if job.merges], who)
    run_together(settling([*(job_outcome(job, "finished", made, {}) for job in jobs), *merged]))
    look_after_commit("generate", "finish", *(["command"] if any(job.commanded for job in jobs) else []))
    return complete


def _why(job: EndingJob) -> str:
    places = sorted({place for output in job.outputs for place in output.leaves_for})
    return f"its outputs are at {', '.join(places)}" if places else "its outputs stay where they were made"


def _arrived(jobs: Sequence[EndingJob]) -> Mapping[int, ReportedOutput]:
    """What the jobs made, as the catalogue has it, by output; what is where it is collected is seen from now on."""
    rows = [(o.file_id, job.vo, o.dataset_name, o.lfn, o.goes_to, job.storage) for job in jobs for o in job.outputs]
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(6)]
    with connection.cursor() as cursor:
        cursor.execute(_ARRIVED, dict(zip(("outputs", "vos", "names", "lfns", "places"), columns, strict=False)))
        known = {output: (size, checksum, events) for output, size, checksum, events in cursor.fetchall()}
    return {
        output: ReportedOutput(lfn, known[output][0], known[output][1], storage, known[output][2])
        for output, _, _, lfn, _, storage in rows
        if output in known
    }
